"""A wine's prices over a range, for its page: the step line of a month or a quarter in full, longer ones day by day.

Reads only. The file has every price observed, late ones too, so that somebody can draw what we do not.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Value

from pricing.analytics import all_days
from pricing.daily import Day
from pricing.models import Availability, Merchant, PriceHistory, Wine
from pricing.timeline import Step


@dataclass(frozen=True, slots=True)
class Range:
    """`days` None: as far back as anything is known. `by_day`: too long to read each of its prices."""

    key: str
    words: str
    days: int | None
    by_day: bool = False

    @property
    def last(self) -> str:
        """“the last …”"""
        return self.words.removeprefix("1 ")


RANGES = (
    Range("30d", "30 days", 30),
    Range("90d", "90 days", 90),
    Range("1y", "1 year", 365, by_day=True),
    Range("all", "all", None, by_day=True),
)
DEFAULT = RANGES[1]
SHORTEST = timedelta(days=2)  # a wine that is known since today still has a line


def range_of(key: str) -> Range:
    """The range of that name; the default for what is none."""
    return next((each for each in RANGES if each.key == key), DEFAULT)


@dataclass(frozen=True, slots=True)
class Line:
    steps: list[Step]
    since: datetime
    until: datetime


def daily_line(wine_id: str, chosen: Range, *, now: datetime) -> Line:
    """The lowest best price of each day: 1 query."""
    days = all_days(wine_id)
    known = _midnight(days[0].day) if days else now
    since = now - timedelta(days=chosen.days) if chosen.days else min(known, now - SHORTEST)
    return Line(daily_steps(days, since=since, until=now), since, now)


def daily_steps(days: Sequence[Day], *, since: datetime, until: datetime) -> list[Step]:
    """A step for each day's low, another where the day after goes on dearer, and an end where nobody offers. Pure."""
    points: list[tuple[datetime, Day, bool]] = []
    for at, row in enumerate(days):
        tomorrow = _midnight(row.day) + timedelta(days=1)
        points.append((_midnight(row.day), row, False))
        if row.close != row.low and (at + 1 == len(days) or _midnight(days[at + 1].day) > tomorrow):
            points.append((tomorrow, row, True))
    steps: list[Step] = []
    for when, row, closed in points:
        if when > until:
            break
        price, start = (row.close if closed else row.low), max(when, since)
        if steps and steps[-1].at == start:
            steps.pop()  # before the range began
        if steps and steps[-1].until is None and price is None:
            steps[-1] = Step(steps[-1].at, "", steps[-1].price_usd, until=start)
        elif price is not None and not (steps and steps[-1].until is None and steps[-1].price_usd == price):
            steps.append(Step(start, "", price))
    return steps


# --- The file --------------------------------------------------------------------------------------------------

HEADER = ("observed_at", "merchant_id", "merchant", "price_usd", "late")
_FORMULA = re.compile(r"[=+\-@\t\r\n]")  # what a spreadsheet would compute


def write_csv(wine: Wine) -> Iterator[str]:
    """Line by line, oldest first; no price: from then on that merchant did not offer it."""
    names = dict(Merchant.objects.values_list("pk", "name"))
    columns = ("observed_at", "merchant_id", "price_usd", "late", "place", "id")
    prices = PriceHistory.objects.filter(wine=wine).annotate(place=Value(0)).order_by()
    gaps = Availability.objects.filter(wine=wine).annotate(late=Value(False), place=Value(1)).order_by()
    rows = prices.values_list(*columns).union(gaps.values_list(*columns), all=True)
    yield "\ufeff" + _csv_line(HEADER)
    for at, merchant_id, price, late, *_ in rows.order_by("observed_at", "place", "id").iterator():
        said = (at.astimezone(UTC).isoformat(), merchant_id, names.get(merchant_id, ""), price, "yes" if late else "no")
        yield _csv_line(said)


def _csv_line(cells: Sequence[object]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerow(["" if cell is None else _safe(str(cell)) for cell in cells])
    return buffer.getvalue()


def _safe(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
