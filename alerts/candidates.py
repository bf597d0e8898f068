"""Which alerts a batch of events can move: their ids first, then a chunk of them at a time, locked.

Guarantee: no alert that rules.py would let speak or change is left out; whatever its wine, few others are read. Locks
in id order. Called by matching alone, in its transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from alerts import owners
from alerts.rules import Kind, State, Watch
from jobs.database import run
from jobs.messages import dumps
from pricing.contract import PRICE_CURRENCY

# A hundred thousand people may watch one wine. So many of their alerts are held in memory, decided and written at a
# time, in one transaction nevertheless.
CHUNK = 5_000

# Jumps from one currency to the next in the index, so that a million alerts cost as many looks as there are currencies.
CURRENCIES = """
WITH RECURSIVE used AS (
    (SELECT currency FROM alerts_alert WHERE NOT (currency = 'USD') ORDER BY currency LIMIT 1)
    UNION ALL
    SELECT (SELECT currency FROM alerts_alert WHERE NOT (currency = 'USD') AND currency > used.currency
            ORDER BY currency LIMIT 1)
    FROM used WHERE used.currency IS NOT NULL
)
SELECT currency FROM used WHERE currency IS NOT NULL
"""
# Those whose target is reached; those that were told, which may arm; those without a target; those to check first.
FIND = """
SELECT alert.id FROM jsonb_to_recordset(%(asked)s::jsonb) AS asked (wine_id text, currency text, amount numeric)
JOIN alerts_alert alert ON alert.wine_id = asked.wine_id AND alert.state = 'armed'
 AND alert.currency = asked.currency AND alert.target >= asked.amount
WHERE NOT (alert.state = 'paused') AND alert.deleted_at IS NULL
UNION
SELECT id FROM alerts_alert
WHERE wine_id = ANY(%(moved)s) AND state = 'fired' AND NOT (state = 'paused') AND deleted_at IS NULL
UNION
SELECT id FROM alerts_alert WHERE wine_id = ANY(%(moved)s) AND target IS NULL AND state = 'armed' AND deleted_at IS NULL
UNION
SELECT id FROM alerts_alert WHERE id = ANY(%(first)s)
ORDER BY id
"""
# Locked in id order, those that still listen. Each is looked up by itself, and so is its owner's address: a hundred
# thousand people are no reason to read them all for each chunk.
LOCK = f"""
SELECT alert.id, alert.wine_id, merchant_id, kind, state, currency, target, low_days, last_notified_price,
       last_notified_at, snoozed_until, snoozed_until_rise
FROM alerts_alert alert
WHERE alert.id = ANY(%(ids)s::bigint[]) AND NOT (state = 'paused') AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > %(now)s) AND {owners.CONFIRMED_SQL}
ORDER BY alert.id FOR NO KEY UPDATE OF alert
"""  # noqa: S608  (constants)

Row = tuple[Any, ...]  # LOCK's columns, the alert's id first


@dataclass(slots=True)
class Candidate:
    """Alerts that are locked and may change: one, or many that are the same in all that the rules look at."""

    alerts: list[int]
    wine_id: str
    merchant_id: str | None
    watch: Watch


def currencies_in_use() -> list[str]:
    """Every currency that an alert is in: 1 query."""
    with connection.cursor() as cursor:
        cursor.execute(CURRENCIES)
        return [PRICE_CURRENCY, *(row[0] for row in cursor.fetchall())]


def find(*, asked: Mapping[tuple[str, str], Decimal], moved: Iterable[str], first: Iterable[int]) -> list[int]:
    """Ids, ascending. `asked` is the lowest amount of each (wine, currency), `first` the alerts to check first."""
    rows = [{"wine_id": w, "currency": c, "amount": amount} for (w, c), amount in asked.items()]
    with connection.cursor() as cursor:
        cursor.execute(FIND, {"asked": dumps(rows), "moved": list(moved), "first": list(first)})
        return [row[0] for row in cursor.fetchall()]


def locked(ids: Sequence[int], *, now: datetime) -> Iterator[list[Row]]:
    """A chunk at a time, in id order, of those that still listen. In a pipeline the next chunk is locked meanwhile.

    None of people who have not confirmed their address: theirs stay as they are until waiting.py wakes them.
    """
    chunks = [ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK)]
    asked = [_ask(chunk, now) for chunk in chunks[:1]]
    for number in range(len(chunks)):
        asked += [_ask(chunk, now) for chunk in chunks[number + 1 : number + 2]]
        yield asked.pop(0).fetchall()


def alike(rows: Iterable[Row], apart: Mapping[int, Hashable]) -> list[Candidate]:
    """Of a wine that many watch most alerts differ in nothing but their owners: then they are judged as one.

    `apart` says of some alerts, by id, in what else they differ.
    """
    found: dict[tuple[Row, Hashable], list[int]] = defaultdict(list)
    for row in rows:
        found[row[1:], apart.get(row[0])].append(row[0])
    return [_candidate(alerts, *look) for (look, _), alerts in found.items()]


def _ask(ids: Sequence[int], now: datetime) -> CursorWrapper:
    # As one text: five thousand parameters take the client longer than the server.
    return run(LOCK, {"ids": f"{{{','.join(map(str, ids))}}}", "now": now}, keep_plan=False)


def _candidate(
    alerts: list[int],
    wine_id: str,
    merchant_id: str | None,
    kind: str,
    state: str,
    currency: str,
    target: Decimal | None,
    low_days: int | None,
    told_at: Decimal | None,
    told_when: datetime | None,
    snoozed_until: datetime | None,
    snoozed_until_rise: bool,
) -> Candidate:
    watch = Watch(
        kind=Kind(kind),
        state=State(state),
        currency=currency,
        target=target,
        low_days=low_days,
        told_at=told_at,
        told_when=told_when,
        snoozed_until=snoozed_until,
        snoozed_until_rise=snoozed_until_rise,
    )
    return Candidate(alerts, wine_id, merchant_id, watch)
