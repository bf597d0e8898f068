"""A wine's prices day by day: one row for each UTC day on which something changed. Pure; imports no Django.

A row holds what every merchant asked at its end, so that the next one can be made from it, and the low and high of the
best price over the day, its opening included. A day without a row is as the last one before it ended. Used by
analytics.py, which keeps the rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from pricing.timeline import Observation

CENT = Decimal("0.01")
WEEK, MONTH, QUARTER, YEAR = 7, 30, 90, 365  # days


@dataclass(frozen=True, slots=True)
class Asked:
    """What a merchant asks since then; no price: since then it does not offer the wine."""

    at: datetime
    price_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Day:
    """`low`, `high`: of the best price over the day, None where nobody offered. The rest is as the day ended."""

    day: date
    low: Decimal | None = None
    high: Decimal | None = None
    close: Decimal | None = None
    average: Decimal | None = None
    offers: int = 0
    asked: Mapping[str, Asked] = field(default_factory=dict)

    def opened_on(self, day: date) -> Day:
        """A later day, before anything changes on it."""
        return replace(self, day=day, low=self.close, high=self.close)

    def widened(self, best: Decimal | None) -> Day:
        """The best price was this at some time of the day."""
        if best is None:
            return self
        return replace(self, low=min(best, self.low or best), high=max(best, self.high or best))

    def ending_with(self, merchant_id: str, asked: Asked) -> Day:
        """The day, if this is the last that the merchant said on it."""
        now = {**self.asked, merchant_id: asked}
        prices = [each.price_usd for each in now.values() if each.price_usd is not None]
        average = (sum(prices, Decimal(0)) / len(prices)).quantize(CENT, ROUND_HALF_UP) if prices else None
        after = replace(self, close=min(prices, default=None), average=average, offers=len(prices), asked=now)
        return after.widened(after.close)


class Ledger:
    """The days of one wine, in which observations are entered; `changed` are those that have to be written.

    Observations may come in any order and repeatedly: of one merchant's the later holds, by its own clock. One that
    comes after a later one can still lower the low of its day, since somebody could have bought at it.
    """

    def __init__(self, days: Iterable[Day] = ()) -> None:
        """`days`: all from the first observation's day on, and the last before that."""
        self._rows = {each.day: each for each in days}
        self._order = sorted(self._rows)
        self._changed: set[date] = set()

    @property
    def changed(self) -> list[Day]:
        return [self._rows[day] for day in sorted(self._changed)]

    def enter(self, seen: Observation) -> None:
        day = seen.at.astimezone(UTC).date()
        self._open(day)
        before: Day | None = None
        for each in self._order[bisect_left(self._order, day) :]:
            row = self._rows[each]
            if before is not None:
                row = row.widened(before.close)  # it opens as the day before it now ends
            known = row.asked.get(seen.merchant_id)
            superseded = known is not None and known.at > seen.at
            if not superseded:
                row = row.ending_with(seen.merchant_id, Asked(seen.at, seen.price_usd))
            elif before is None and seen.price_usd is not None and seen.price_usd < (row.low or seen.price_usd + 1):
                row = row.widened(seen.price_usd)
            if row != self._rows[each]:
                self._rows[each] = row
                self._changed.add(each)
            if superseded:
                return
            before = row

    def _open(self, day: date) -> None:
        if day in self._rows:
            return
        place = bisect_left(self._order, day)
        self._rows[day] = self._rows[self._order[place - 1]].opened_on(day) if place else Day(day)
        insort(self._order, day)
        self._changed.add(day)


@dataclass(frozen=True, slots=True)
class Span:
    """A period's low and high, for a table."""

    words: str
    low: Decimal | None
    high: Decimal | None


SPANS = (("7 days", WEEK), ("30 days", MONTH), ("90 days", QUARTER), ("1 year", YEAR))


@dataclass(frozen=True, slots=True)
class Standing:
    """What a wine cost within a year, as somebody asks who is about to set a target. Prices are the best of each time.

    `days` are in order: those of the last year, and the last before it. Figures are None where nothing is known.
    """

    today: date
    days: Sequence[Day] = ()
    ever_low: Decimal | None = None
    ever_low_on: date | None = None

    @property
    def now(self) -> Decimal | None:
        return self.days[-1].close if self.days else None

    def low(self, period: int) -> Decimal | None:
        """The lowest since the beginning of the day so many days ago, as a chart of so many days shows it."""
        return min(self._prices(period, "low"), default=None)

    def high(self, period: int) -> Decimal | None:
        return max(self._prices(period, "high"), default=None)

    def ended(self, day: date) -> Decimal | None:
        """The price at the end of that day; None where nobody offered."""
        place = bisect_right(self.days, day, key=lambda row: row.day)
        return self.days[place - 1].close if place else None

    @property
    def week_ago(self) -> Decimal | None:
        return self.ended(self.today - timedelta(days=WEEK))

    def spans(self) -> list[Span]:
        return [Span(words, self.low(days), self.high(days)) for words, days in SPANS]

    def times_at_or_below(self, price: Decimal, period: int = YEAR) -> int:
        """How many separate stays at or below `price` there were; one that lasts is one, and so are many in a day."""
        count, below = 0, False
        for row in self._within(period):
            here = row.low is not None and row.low <= price
            count += here and not below
            below = row.close is not None and row.close <= price
        return count

    def _within(self, period: int) -> list[Day]:
        """The rows of the period, the first of them being what it began with."""
        since = self.today - timedelta(days=period)
        place = bisect_left(self.days, since, key=lambda row: row.day)
        begun = [self.days[place - 1].opened_on(since)] if place else []
        return [*begun, *self.days[place:]]

    def _prices(self, period: int, name: str) -> list[Decimal]:
        return [price for row in self._within(period) if (price := getattr(row, name)) is not None]
