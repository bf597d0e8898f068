"""A catalogue file taken here and now, by the same steps as a worker takes it. Called by `manage.py import_catalogue`.

Guarantee: a file that was begun before and interrupted goes on where it stopped; a dry run leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO

from django.conf import settings

from pricing.catalogues import compare, files, lease, refresh, report, source, stage
from pricing.catalogues.ahead import Ahead
from pricing.models import CatalogueFile, CatalogueSettings, Merchant

Progress = Callable[[int, int | None], None]


class CannotTakeError(Exception):
    """Nothing was kept and nothing done; the message says why."""


@dataclass(frozen=True, slots=True)
class Told:
    as_json: dict[str, Any]
    lines: list[str]
    refused: bool


def take(
    *,
    merchant_id: str,
    name: str,
    data: BinaryIO,
    format_: str | None,
    as_of: datetime,
    dry_run: bool,
    progress: Progress,
    now: datetime,
) -> Told:
    """Raises CannotTakeError. `progress` gets the rows that are done, and of how many once that is known."""
    file = _receive(merchant_id, name, data, format_, as_of, now)
    if dry_run:
        try:
            return _preview(file, progress, now)
        finally:
            stage.drop(CatalogueFile.objects.values_list("stage", flat=True).get(pk=file.pk))
            file.delete()
    begun = CatalogueFile.objects.filter(
        merchant=file.merchant_id, sha256=file.sha256, status__in=CatalogueFile.RUNNING
    ).first()
    if begun:
        file.delete()
        file = begun
    try:
        refresh.run(file_id=file.pk, now=now, progress=lambda file: progress(*_done(file)))
    except lease.BusyError as busy:
        if file is not begun:
            file.delete()
        raise CannotTakeError(f"{busy} Try again when it is done.") from None
    file.refresh_from_db()
    lines = [*(["It was begun before, and went on where it had stopped."] if begun else []), *report.in_words(file)]
    return Told(report.as_json(file), lines, refused=file.status == CatalogueFile.Status.REFUSED)


def _receive(
    merchant_id: str, name: str, data: BinaryIO, format_: str | None, as_of: datetime, now: datetime
) -> CatalogueFile:
    merchant = Merchant.objects.filter(pk=merchant_id).first()
    if merchant is None:
        raise CannotTakeError(f"No merchant has the id {merchant_id}.")
    if as_of > now + settings.FEED_CLOCK_TOLERANCE:
        raise CannotTakeError("The time of its prices is in the future.")
    try:
        file = files.receive(
            merchant=merchant, name=name, data=_blocks(data), as_of=as_of, send=False, by="manage.py", now=now
        )
    except files.FileTooLargeError as error:
        raise CannotTakeError(str(error)) from None
    if format_:
        kept = CatalogueSettings.objects.select_related("merchant").get(merchant=merchant)
        kept.format = format_  # for this file alone, so it is not saved
        file.settings = source.freeze(kept)
        file.save(update_fields=["settings"])
    return file


def _preview(file: CatalogueFile, progress: Progress, now: datetime) -> Told:
    ahead = Ahead()
    try:
        leased = lease.claim(file_id=file.pk, now=now)
        assert leased is not None  # it has just been received
        refresh.step(leased, ahead, now=now, progress=lambda file: progress(*_done(file)))
    except lease.BusyError as busy:
        raise CannotTakeError(f"{busy} Try again when it is done.") from None
    except source.RefusedError as refusal:
        return Told({"error": str(refusal)}, [str(refusal)], refused=True)
    finally:
        ahead.close()
    assert leased.reading is not None  # it has been read
    found = compare.preview(leased.stage, merchant_id=leased.merchant_id, reading=leased.reading)
    absent = stage.add_absent(leased.stage, leased.merchant_id, after=0)
    rows = {
        "read": leased.seen,
        "new": found.new,
        "described_anew": found.described_anew,
        "asked_anew": found.asked_anew,
        "same": found.same,
        "unread": leased.unread,
        "absent": absent,
    }
    lines = ["This was a dry run: nothing was taken."]
    lines += [f"{count:>9,} {DRY[name]}" for name, count in rows.items() if count or name == "read"]
    return Told({"dry_run": True, **rows, "notes": report.notes(leased)}, lines + report.notes(leased), refused=False)


DRY = {
    "read": "rows read, of which",
    "new": "are of listings that no file had",
    "described_anew": "are described in another way",
    "asked_anew": "ask another price",
    "same": "say what they said",
    "unread": "could not be read",
    "absent": "listings of earlier files are not in it",
}


def _done(file: CatalogueFile) -> tuple[int, int | None]:
    return (file.cursor, file.rows) if file.status == CatalogueFile.Status.APPLYING else (file.seen, None)


def _blocks(data: BinaryIO) -> Iterator[bytes]:
    while block := data.read(settings.CATALOGUE_PIECE_BYTES):
        yield block
