"""Deriving the price history and its gaps again from the message log, while the system runs.

Guarantee: touches only rows of events that the log holds and that had been applied when it began; what workers append
meanwhile, and what is older than the log, stays. Each thousand wines are one transaction. Called by the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection, transaction

from jobs.catalog import applied_messages
from pricing.history import AVAILABILITY_COLUMNS, AVAILABILITY_FROM_BODIES, COLUMNS, CONTRACT, FROM_BODIES

CONSUMER = "price-history"
WINES_AT_ONCE = 1_000


@dataclass(frozen=True)
class Projection:
    """A table, its columns, and the SELECT that makes its rows of the bodies of messages."""

    table: str
    columns: str
    from_bodies: str

    def derived(self, which: str = "") -> str:
        bodies = "(SELECT jsonb_agg(body ORDER BY id) FROM applied {which})".replace("{which}", which)
        return self.from_bodies.replace("%(bodies)s::jsonb", bodies)

    def insertion(self) -> str:
        return f"INSERT INTO {self.table} ({self.columns}) " + self.derived("WHERE key = ANY(%(keys)s)")

    def removal(self) -> str:
        return REMOVAL.format(table=self.table)

    def difference(self) -> str:
        kept, derived = (", ".join(f"{row}.{name}" for name in self.columns.split(", ")) for row in ("kept", "d"))
        return DIFFERENCE.format(
            table=self.table, columns=self.columns, derived=self.derived(), kept_row=kept, derived_row=derived
        )


PROJECTIONS = (
    Projection("pricing_pricehistory", COLUMNS, FROM_BODIES),
    Projection("pricing_availability", AVAILABILITY_COLUMNS, AVAILABILITY_FROM_BODIES),
)
REMOVAL = """
DELETE FROM {table} WHERE wine_id = ANY(%(keys)s)
  AND event_id IN (SELECT event_id FROM applied WHERE key = ANY(%(keys)s))
"""
DIFFERENCE = """
WITH derived ({columns}) AS ({derived}),
kept AS (SELECT {columns} FROM {table} WHERE wine_id IN (SELECT key FROM applied)),
log AS (SELECT event_id FROM applied)
SELECT (SELECT count(*) FROM derived),
       (SELECT count(*) FROM derived d WHERE NOT EXISTS (SELECT FROM kept WHERE kept.event_id = d.event_id)),
       (SELECT count(*) FROM kept JOIN derived d USING (event_id)
         WHERE ({kept_row}) IS DISTINCT FROM ({derived_row})),
       (SELECT count(*) - count(DISTINCT event_id) FROM kept WHERE event_id IN (SELECT event_id FROM log))
         + (SELECT count(*) FROM kept WHERE event_id IN (SELECT event_id FROM log)
              AND event_id NOT IN (SELECT event_id FROM derived)),
       (SELECT count(*) FROM kept WHERE event_id NOT IN (SELECT event_id FROM log))
"""


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
        counts = []
        for projection in PROJECTIONS:
            cursor.execute(projection.difference(), CONTRACT)
            counts.append(cursor.fetchone())
        yield Difference(*map(sum, zip(*counts, strict=True)))


def replace(*, progress: Callable[[int, int], None]) -> None:
    """Write the derived rows in place of those of the same events. `progress` gets (wines done, wines in all)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT key FROM applied ORDER BY key")
        keys = [key for (key,) in cursor.fetchall()]
        for start in range(0, len(keys), WINES_AT_ONCE):
            some = keys[start : start + WINES_AT_ONCE]
            with transaction.atomic():
                for each in PROJECTIONS:
                    cursor.execute(each.removal(), {"keys": some})
                    cursor.execute(each.insertion(), {"keys": some, **CONTRACT})
            progress(min(start + WINES_AT_ONCE, len(keys)), len(keys))
