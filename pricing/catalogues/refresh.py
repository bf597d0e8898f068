"""Taking a catalogue file: read into a stage, compared with what was last taken, only the differences recorded.

Guarantee: each chunk of rows is one transaction that also moves the file's cursor and counts, and only while the file
is still leased to whoever writes it. So a crash costs at most one chunk, every row counts once, and the same file twice
changes nothing. One file of a merchant is taken at a time. Called by the command message's handler and `manage.py`.

The lock order is that of listings: the file's row → listings → wines → offers; a comparison takes wines → offers alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import transaction

from jobs.errors import LeaseLostError
from jobs.garbage import uncollected
from pricing import listings
from pricing.catalogues import absent, compare, lease, remarks, source, stage
from pricing.catalogues.ahead import Ahead
from pricing.catalogues.compare import Found, State
from pricing.catalogues.rows import Raw, Rejected
from pricing.catalogues.source import How
from pricing.listings import Kept, Result
from pricing.matching import Ask, Listed
from pricing.models import CatalogueFile, CatalogueRemark, CatalogueSettings

log = structlog.get_logger(__name__)
Status = CatalogueFile.Status
Kind = CatalogueRemark.Kind
Progress = Callable[[CatalogueFile], None]

# Which count a row goes into, by what became of its price. Names, so that a new verdict is a new line here.
COUNTED = {
    "applied": "changed",
    "returned": "changed",
    "unchanged": "unchanged",
    "stale": "stale",
    "held": "held",
    "no rate": "held",
}
WINDOWS_AT_ONCE = 20  # at most so many are compared before what differs is recorded, however little that is
_READ = [
    *("rows", "unread", "nameless", "bare", "style", "reading", "broken", "error", "shrunken", "late"),
    *("absent", "status", "cursor"),
]
COUNTS = ("changed", "unchanged", "stale", "held", "unmatched", "kept", "rejected")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one run came to: whether there is more to do, and whether somebody else is doing it."""

    more: bool
    busy: bool = False


def run(*, file_id: int, now: datetime, seconds: float | None = None, progress: Progress = lambda _: None) -> Turn:
    """Go on with a file until it is finished, or until `seconds` have passed. Raises BusyError.

    `now` is our time of what is written; `progress` is called after every step with the file as it then is.
    """
    file = lease.claim(file_id=file_id, now=now)
    if file is None:
        return Turn(more=False)
    deadline = None if seconds is None else time.monotonic() + seconds
    ahead = Ahead()
    try:
        while step(file, ahead, now=now, progress=progress):
            progress(file)
            if deadline is not None and time.monotonic() > deadline:
                lease.release(file)
                return Turn(more=True)
    except LeaseLostError:
        log.warning("catalogue.lease_lost", file=file_id)
        return Turn(more=False)  # whoever has it now goes on
    except source.RefusedError as refusal:
        lease.refuse(file, str(refusal), now=now)
    except BaseException:  # whoever comes next need not wait until the lease has run out
        with suppress(DatabaseError):
            lease.release(file)
        raise
    finally:
        ahead.close()
    progress(file)
    return Turn(more=False)


def step(file: CatalogueFile, ahead: Ahead, *, now: datetime, progress: Progress = lambda _: None) -> bool:
    """Do the next thing; whether there is more. `file` then says how far it has come. Raises what `run` handles."""
    if file.status == Status.READING:
        with uncollected():
            _read(file, ahead, progress)
    elif file.cursor < file.rows:
        with uncollected():
            _take_some(file, ahead, now)
    elif file.absent is None:
        absent.find(file)
    elif file.absent_done < file.absent:
        absent.leave_some(file, now)
    else:
        _finish(file, now)
        return False
    return True


def accept_size(*, file_id: int) -> bool:
    """A person says that a file which seemed shrunken is whole: the next is compared with it. False if it is not."""
    file = CatalogueFile.objects.get(pk=file_id)
    if file.status != Status.DONE or file.broken:
        return False
    CatalogueSettings.objects.filter(merchant=file.merchant_id).update(rows=file.rows)
    return True


# --- Reading ----------------------------------------------------------------------------------------------------


def _read(file: CatalogueFile, ahead: Ahead, progress: Progress) -> None:
    """Stage all rows. Nothing is taken before the whole file has been read, so a fault at its end costs nothing."""
    kept = CatalogueSettings.objects.select_related("merchant").get(merchant=file.merchant_id)
    if file.settings is None:
        file.settings = source.freeze(kept)
    file.late = kept.as_of is not None and file.as_of < kept.as_of
    _refuse_again(file)
    reader = source.Reader(file)
    stage.create(file.stage)
    for portion in reader.portions(settings.CATALOGUE_WINDOW):
        ahead.begin(portion, partial(stage.copy, file.stage, portion))
        file.seen = reader.rows + reader.unread
        with transaction.atomic():
            lease.hold(file)
            file.save(update_fields=["seen", "settings"])
        progress(file)
    ahead.settle()
    how = reader.finish()
    file.bare = stage.finish(file.stage)
    if file.cursor and file.rows != reader.rows:  # read by other code than the first time: begin again
        file.cursor = 0
        for count in COUNTS:
            setattr(file, count, 0)
    file.rows, file.unread, file.nameless = reader.rows, reader.unread, reader.nameless
    file.style, file.reading = asdict(how.style), how.fingerprint()
    file.broken, file.error = bool(reader.broken), reader.broken
    file.shrunken = kept.rows is not None and file.rows * 100 < kept.rows * file.settings["smallest_share"]
    file.absent, file.status = None, Status.APPLYING
    with transaction.atomic():
        lease.hold(file)
        CatalogueRemark.objects.filter(file=file, kind=Kind.UNREAD).delete()  # of an earlier reading
        remarks.keep(file, Kind.UNREAD, reader.remarks, already=0)
        file.save(update_fields=[*_READ, *COUNTS])


def _refuse_again(file: CatalogueFile) -> None:
    """An old file's prices go into the history, and a second time they would go there twice."""
    same = CatalogueFile.objects.filter(merchant=file.merchant_id, sha256=file.sha256, as_of=file.as_of)
    before = same.filter(status=Status.DONE).first()
    if file.late and before:
        raise source.RefusedError(
            f"The same file of the same time was taken as file {before.pk}. Nothing is left to do."
        )


# --- Taking -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was found in the rows up to `upto`, and those of it that are to be recorded."""

    found: list[Found]
    differing: list[Found]
    upto: int


def _take_some(file: CatalogueFile, ahead: Ahead, now: datetime) -> None:
    """Record what differs in the next windows, in chunks, while those behind them are compared."""
    some = ahead.take(file.cursor, partial(_gather, file, file.cursor))
    if some.upto < file.rows:
        ahead.begin(some.upto, partial(_gather, file, some.upto))
    how = How.of(file)
    for begin in range(0, max(len(some.differing), 1), settings.CATALOGUE_CHUNK):
        chunk = some.differing[begin : begin + settings.CATALOGUE_CHUNK]
        last = begin + settings.CATALOGUE_CHUNK >= len(some.differing)
        _take_chunk(file, some.found, chunk, some.upto if last else chunk[-1].n, how, now)


def _gather(file: CatalogueFile, after: int) -> Gathered:
    """Compare windows until enough rows differ to be worth a transaction. Of the file it reads what no longer moves."""
    assert file.reading is not None  # it has been read
    found: list[Found] = []
    differing: list[Found] = []
    upto, most = after, min(after + WINDOWS_AT_ONCE * settings.CATALOGUE_WINDOW, file.rows)
    while upto < most and len(differing) < settings.CATALOGUE_CHUNK:
        until = min(upto + settings.CATALOGUE_WINDOW, most)
        with transaction.atomic():
            found += compare.compare(
                file.stage,
                merchant_id=file.merchant_id,
                reading=file.reading,
                as_of=file.as_of,
                after=upto,
                until=until,
            )
        differing = [row for row in found if row.state is State.DIFFERS]
        upto = until
    return Gathered(found, differing, upto)


def _take_chunk(
    file: CatalogueFile, found: Sequence[Found], chunk: Sequence[Found], upto: int, how: How, now: datetime
) -> None:
    """Record the chunk, and count it and all rows up to `upto`, which no earlier chunk has counted."""
    states = (row.state.value for row in found if row.state is not State.DIFFERS and file.cursor < row.n <= upto)
    counts = Counter(states)
    with transaction.atomic():
        lease.hold(file)
        if chunk:
            counts += _record(file, chunk, how, now)
        counts["unchanged"] += upto - file.cursor - counts.total()
        for name, count in counts.items():
            setattr(file, name, getattr(file, name) + count)
        file.cursor = upto
        file.save(update_fields=["cursor", *COUNTS])


def _record(file: CatalogueFile, chunk: Sequence[Found], how: How, now: datetime) -> Counter[str]:
    rows = dict(stage.rows(file.stage, [row.n for row in chunk]))
    said = {rows[row.n].source_id: row.word.said for row in chunk if row.described}
    described = listings.still_described(file.merchant_id, said)
    asks: list[Ask] = []
    rejected: list[Rejected] = []
    words = {}
    for row in chunk:
        raw = rows[row.n]
        meant = _interpret(raw, described.get(raw.source_id), how, file.as_of)
        if isinstance(meant, Rejected):
            rejected.append(meant)
        else:
            asks.append(meant)
            words[raw.source_id] = row.word
    results = listings.record(
        merchant=file.merchant,
        asks=asks,
        attributes={"catalogue_file": str(file.pk)},
        words=words,
        doubted=[each.source_id for each in rejected],
        now=now,
    )
    remarks.keep(file, Kind.REJECTED, rejected, already=file.rejected)
    return Counter(map(_counted, results)) + Counter(rejected=len(rejected))


def _interpret(raw: Raw, listed: Listed | None, how: How, as_of: datetime) -> Ask | Rejected:
    """What a row means; of one that is described as before only the price is read."""
    if listed is None:
        return how.interpret(raw, as_of)
    meant = how.interpret(raw._replace(title="", size="", vintage="", gtin="", lwin="", wine_id=""), as_of)
    return meant if isinstance(meant, Rejected) else replace(meant, listed=listed)


def _counted(result: Result) -> str:
    if result.outcome:
        return COUNTED[result.outcome.verdict.value]
    return "unmatched" if result.kept is Kept.UNMATCHED else "kept"


# --- The end ---------------------------------------------------------------------------------------------------


def _finish(file: CatalogueFile, now: datetime) -> None:
    with transaction.atomic():
        lease.hold(file)
        if not (file.shrunken or file.broken or file.late):
            CatalogueSettings.objects.filter(merchant=file.merchant_id).update(rows=file.rows, as_of=file.as_of)
        file.status, file.finished_at = Status.DONE, now
        file.save(update_fields=["status", "finished_at"])
        stage.drop(file.stage)
    log.info("catalogue.done", file=file.pk, **{name: getattr(file, name) for name in ("rows", *COUNTS, "absent")})
