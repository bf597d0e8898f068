"""Idempotency: a merchant's retry gets the answer its first request got, and has no second effect.

Guarantee: the stored answers, and the effects they tell of, are committed in one transaction. A request that is refused
stores nothing, so its ids may be used again with a corrected body. Called by the feed's view.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.backends.utils import CursorWrapper

from jobs.database import pipelined, run
from jobs.housekeeping import in_chunks
from jobs.messages import dumps
from jobs.schedule import store
from jobs.schedule.run import Run
from pricing.feeds.errors import FeedError, unavailable
from pricing.models import FeedAnswer, Merchant

Answer = dict[str, Any]
PURGE_BATCH = 5_000

# Waits for a twin that is at work, up to lock_timeout; whichever commits first has the row. Twins that share several
# ids meet them in one order, so that neither waits for the other.
# The first statement of the transaction: it also says how long any of them may wait for a lock, itself included. A
# round trip less; the WHERE has the limit set before a row is inserted.
LIMIT = "SELECT set_config('lock_timeout', %(patience)s, true) AS limited"
RESERVE = f"""
WITH patience AS MATERIALIZED ({LIMIT})
INSERT INTO pricing_feedanswer (merchant_id, key, body_sha256)
SELECT %(merchant)s, key, digest FROM patience, unnest(%(keys)s::text[], %(digests)s::text[]) AS unit (key, digest)
WHERE limited IS NOT NULL ORDER BY key
ON CONFLICT (merchant_id, key) DO NOTHING
RETURNING key, id
"""  # noqa: S608 (of our own constants)
STORE = """
UPDATE pricing_feedanswer AS stored SET answer = made.answer
FROM jsonb_to_recordset(%s::jsonb) AS made (id bigint, answer jsonb) WHERE stored.id = made.id
"""
TWIN_RETRY_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Unit:
    """What is done once and answered once: a request, or an event in it. Without a key it is done each time.

    `meaning` is what must be the same when the key comes again; `field` says where the key stands.
    """

    key: str | None
    meaning: bytes
    field: str | None = None

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.meaning).hexdigest()


def once(
    *,
    merchant: Merchant,
    units: Sequence[Unit],
    work: Callable[[Sequence[int]], Sequence[Answer]],
    ahead: Callable[[], None] | None = None,
) -> list[Answer]:
    """The units' answers, in their order: from `work`, for those that are new, or as they were stored.

    `work` gets the numbers of the new units and is called at most once, for all of them. `ahead` is called before it is
    known which are new, and sends along what `work` will need: that nothing is new is seldom, and is then undone. Such
    work is done in a pipeline (see jobs.database). Raises FeedError 409 when a key was used with another meaning; a
    database error when a twin or a wine stays locked for longer than FEED_LOCK_TIMEOUT.
    """
    digests = [unit.digest if unit.key is not None else "" for unit in units]
    first = _first_of_each_key(units, digests)
    with transaction.atomic():
        with pipelined():
            reserving = _reserve(merchant, {key: digests[index] for key, index in first.items()})
            if ahead:
                ahead()
        reserved = dict(reserving.fetchall()) if first else {}
        new = [
            index
            for index, unit in enumerate(units)
            if unit.key is None or (unit.key in reserved and first[unit.key] == index)
        ]
        found = _stored(merchant, units, digests, [key for key in first if key not in reserved])
        if new:
            with pipelined() if ahead else nullcontext():
                made = dict(zip(new, work(new), strict=True))
                _store({reserved[key]: made[index] for index in new if (key := units[index].key) is not None})
        else:
            made = {}
            transaction.set_rollback(True)
    return [_answer(index, unit, first, made, found) for index, unit in enumerate(units)]


def _first_of_each_key(units: Sequence[Unit], digests: Sequence[str]) -> dict[str, int]:
    """Where each key stands first. One request may bring an event twice, but not two events under one id."""
    first: dict[str, int] = {}
    for index, unit in enumerate(units):
        if unit.key is not None and digests[first.setdefault(unit.key, index)] != digests[index]:
            raise _conflict(unit)
    return first


def _reserve(merchant: Merchant, digests: dict[str, str]) -> CursorWrapper:
    """Take the keys that are free: their rows by key. Without any keys it sets the limit alone."""
    if not digests:
        return run(LIMIT, {"patience": patience()})
    parameters = {"merchant": merchant.pk, "keys": list(digests), "digests": list(digests.values())}
    return run(RESERVE, {"patience": patience(), **parameters})


def patience() -> str:
    """How long a request waits for a lock, as LIMIT has it."""
    return f"{int(settings.FEED_LOCK_TIMEOUT.total_seconds() * 1000)}ms"


def _stored(merchant: Merchant, units: Sequence[Unit], digests: Sequence[str], used: list[str]) -> dict[str, Answer]:
    """The answers under the keys that were used before, each for the same meaning as now."""
    if not used:
        return {}
    stored = {answer.key: answer for answer in FeedAnswer.objects.filter(merchant=merchant, key__in=used)}
    found: dict[str, Answer] = {}
    for unit, digest in zip(units, digests, strict=True):
        if unit.key is None or unit.key not in used:
            continue
        kept = stored.get(unit.key)
        if kept is None or kept.answer is None:  # its retention ended between the two statements
            raise unavailable(retry_after=TWIN_RETRY_SECONDS)
        if kept.body_sha256 != digest:
            raise _conflict(unit)
        found[unit.key] = {**kept.answer, "duplicate": True}
    return found


def _store(answers: dict[int, Answer]) -> None:
    if answers:
        rows = [{"id": id_, "answer": answer} for id_, answer in answers.items()]
        run(STORE, [dumps(rows)], keep_plan=False)


def _answer(index: int, unit: Unit, first: dict[str, int], made: dict[int, Answer], found: dict[str, Answer]) -> Answer:
    if index in made:
        return made[index]
    assert unit.key is not None  # without a key it was made
    return found[unit.key] if unit.key in found else {**made[first[unit.key]], "duplicate": True}


def _conflict(unit: Unit) -> FeedError:
    message = "This id was used before, with another body. Use a new id for a new request."
    return FeedError(409, "id_conflict", message, field=unit.field)


# --- Retention --------------------------------------------------------------------------------------------------


def purge(run: Run) -> None:
    """A scheduled job: remove the stored answers of feed requests that no merchant will repeat any more."""
    before = store.now() - settings.FEED_ANSWER_RETENTION
    in_chunks(run, lambda: _purge_batch(before), of="answers removed")


def _purge_batch(before: datetime) -> int:
    oldest = FeedAnswer.objects.filter(created_at__lt=before).order_by("created_at").values_list("pk", flat=True)
    deleted, _by_model = FeedAnswer.objects.filter(pk__in=list(oldest[:PURGE_BATCH])).delete()
    return deleted
