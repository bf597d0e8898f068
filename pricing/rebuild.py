"""Deriving the price history again from the message log, while the system runs.

Guarantee: touches only rows of events that the log holds and that had been applied when it began; what workers append
meanwhile, and what is older than the log, stays. Each thousand wines are one transaction. Called by the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection, transaction

from jobs.catalog import applied_messages
from pricing.history import COLUMNS, CONTRACT, FROM_BODIES

CONSUMER = "price-history"
WINES_AT_ONCE = 1_000

DERIVED = FROM_BODIES.replace("%(bodies)s::jsonb", "(SELECT jsonb_agg(body ORDER BY id) FROM applied {which})")
DERIVED_ALL, DERIVED_SOME = DERIVED.replace("{which}", ""), DERIVED.replace("{which}", "WHERE key = ANY(%(keys)s)")
DIFFERENCE = f"""
WITH derived ({COLUMNS}) AS ({DERIVED_ALL}),
kept AS (SELECT {COLUMNS} FROM pricing_pricehistory WHERE wine_id IN (SELECT key FROM applied)),
log AS (SELECT event_id FROM applied)
SELECT (SELECT count(*) FROM derived),
       (SELECT count(*) FROM derived d WHERE NOT EXISTS (SELECT FROM kept WHERE kept.event_id = d.event_id)),
       (SELECT count(*) FROM kept JOIN derived d USING (event_id)
         WHERE (kept.wine_id, kept.merchant_id, kept.price_usd, kept.observed_at, kept.late)
            IS DISTINCT FROM (d.wine_id, d.merchant_id, d.price_usd, d.observed_at, d.late)),
       (SELECT count(*) - count(DISTINCT event_id) FROM kept WHERE event_id IN (SELECT event_id FROM log))
         + (SELECT count(*) FROM kept WHERE event_id IN (SELECT event_id FROM log)
              AND event_id NOT IN (SELECT event_id FROM derived)),
       (SELECT count(*) FROM kept WHERE event_id NOT IN (SELECT event_id FROM log))
"""  # noqa: S608  (constants)


@dataclass(frozen=True)
class Difference:
    """Between the log and the history, in rows. `missing` would be added, `wrong` replaced, `surplus` removed;

    `outside` belong to events the log does not hold (older than it, or applied just now) and stay as they are.
    """

    derived: int
    missing: int
    wrong: int
    surplus: int
    outside: int

    @property
    def any(self) -> bool:
        return bool(self.missing or self.wrong or self.surplus)


@contextmanager
def difference(*, wines: Sequence[str] | None) -> Iterator[Difference]:
    """Compare first; within this block `replace` may follow on the same reading of the log."""
    with applied_messages(CONSUMER, wines), connection.cursor() as cursor:
        cursor.execute(DIFFERENCE, CONTRACT)
        yield Difference(*cursor.fetchone())


def replace(*, progress: Callable[[int, int], None]) -> None:
    """Write the derived rows in place of those of the same events. `progress` gets (wines done, wines in all)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT key FROM applied ORDER BY key")
        keys = [key for (key,) in cursor.fetchall()]
        for start in range(0, len(keys), WINES_AT_ONCE):
            some = keys[start : start + WINES_AT_ONCE]
            with transaction.atomic():
                cursor.execute(
                    "DELETE FROM pricing_pricehistory WHERE wine_id = ANY(%(keys)s)"
                    " AND event_id IN (SELECT event_id FROM applied WHERE key = ANY(%(keys)s))",
                    {"keys": some},
                )
                cursor.execute(
                    f"INSERT INTO pricing_pricehistory ({COLUMNS}) {DERIVED_SOME}",
                    {"keys": some, **CONTRACT},
                )
            progress(min(start + WINES_AT_ONCE, len(keys)), len(keys))
