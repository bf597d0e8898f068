"""The line of a long range, a point for each day."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from pricing.charts import daily_steps, range_of
from pricing.daily import Day

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
UNTIL = FIRST + timedelta(days=60)


def day(number: int, low: str | None, close: str | None) -> Day:
    prices = [None if price is None else Decimal(price) for price in (low, close)]
    return Day(date(2026, 3, 1) + timedelta(days=number), prices[0], prices[0], prices[1], prices[1], 1)


def drawn(days: list[Day], *, since: int = 0) -> list[tuple[int, str, int | None]]:
    """In days since the first: where a step begins, its price, and where it ends if nobody offered then."""
    steps = daily_steps(days, since=FIRST + timedelta(days=since), until=UNTIL)
    return [
        ((step.at - FIRST).days, str(step.price_usd), (step.until - FIRST).days if step.until else None)
        for step in steps
    ]


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ([], []),
        ([day(0, "20", "20"), day(5, "18", "18")], [(0, "20", None), (5, "18", None)]),
        # A dip within a day is drawn at that day, and the next goes on as it ended.
        ([day(0, "20", "20"), day(5, "15", "19")], [(0, "20", None), (5, "15", None), (6, "19", None)]),
        (
            [day(0, "20", "20"), day(5, "15", "19"), day(6, "14", "14")],
            [(0, "20", None), (5, "15", None), (6, "14", None)],
        ),
        # Gone on the third day, back on the ninth.
        ([day(0, "20", "20"), day(3, "20", None), day(9, "21", "21")], [(0, "20", 4), (9, "21", None)]),
        ([day(0, "20", "20"), day(3, "20", None)], [(0, "20", 4)]),
        ([day(0, "20", "20"), day(2, "20", "20")], [(0, "20", None)]),
    ],
)
def test_days_become_steps_and_gaps(days: list[Day], expected: list[tuple[int, str, int | None]]) -> None:
    assert drawn(days) == expected


def test_what_held_before_the_range_holds_at_its_beginning() -> None:
    days = [day(0, "20", "20"), day(5, "15", "19"), day(30, "22", "22")]
    assert drawn(days, since=20) == [(20, "19", None), (30, "22", None)]
    gone = [day(0, "20", "20"), day(5, "20", None), day(30, "22", "22")]
    assert drawn(gone, since=20) == [(30, "22", None)]


def test_an_unknown_range_is_the_default() -> None:
    assert range_of("1y").days == 365
    assert range_of("nonsense") == range_of("90d")
