"""The chart's geometry: where things are drawn. Pure."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.chart import CLEARANCE, HEIGHT, WIDTH, Chart, draw
from pricing.timeline import Step

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=90)


def chart(*points: tuple[float, str | int], target: str | None = None) -> Chart:
    steps = [Step(SINCE + timedelta(days=day), "x", Decimal(price)) for day, price in points]
    return draw(steps, since=SINCE, until=UNTIL, target=Decimal(target) if target else None)


def numbers(path: str) -> list[float]:
    return [float(number) for number in re.findall(r"[0-9.]+", path)]


def test_a_price_is_drawn_as_steps_and_held_until_now() -> None:
    drawn = chart((0, 100), (45, 200), (81, 150))
    height_of = {mark.value: mark.y for mark in (drawn.low, drawn.high, drawn.now) if mark}
    y100, y200, y150 = height_of[Decimal(100)], height_of[Decimal(200)], height_of[Decimal(150)]
    assert drawn.line == f"M0 {y100:g}H500V{y200:g}H900V{y150:g}H{WIDTH}"
    assert y200 < y150 < y100  # dearer is higher


def test_low_high_and_now_are_marked_where_they_first_were() -> None:
    drawn = chart((9, 120), (18, 100), (45, 200), (60, 100), (81, 150))
    assert drawn.high is not None
    assert (drawn.low.value, drawn.low.x, drawn.low.anchor) == (100, 20, "start")
    assert (drawn.high.value, drawn.high.x, drawn.high.anchor) == (200, 50, "middle")
    assert (drawn.now.value, drawn.now.x) == (150, 100)
    assert chart((0, 1), (88, 2)).high.anchor == "end"  # type: ignore[union-attr]


def test_one_price_throughout_is_a_level_line_without_a_high() -> None:
    drawn = chart((0, 100))
    assert drawn.high is None
    assert drawn.line == f"M0 {HEIGHT / 2:g}H{WIDTH}"


def test_a_gap_breaks_the_line_and_an_end_leaves_no_price_now() -> None:
    def day(number: float) -> datetime:
        return SINCE + timedelta(days=number)

    steps = [Step(day(0), "x", Decimal(100), day(9)), Step(day(45), "x", Decimal(100), day(81))]
    drawn = draw(steps, since=SINCE, until=UNTIL)
    y = drawn.low.y
    assert drawn.line == f"M0 {y:g}H100M500 {y:g}H900"
    assert drawn.now is None
    again = draw([*steps, Step(day(85.5), "y", Decimal(200))], since=SINCE, until=UNTIL)
    assert again.line.endswith(f"H900M950 {again.now.y:g}H{WIDTH}")  # type: ignore[union-attr]


def test_a_line_that_begins_late_begins_there() -> None:
    assert chart((72, 100)).line.startswith("M800 ")


@pytest.mark.parametrize(
    ("target", "drawn"), [("50", True), ("49.99", False), ("150", True), ("400", True), ("401", False)]
)
def test_a_target_is_drawn_within_half_and_double_the_prices(target: str, drawn: bool) -> None:
    line = chart((0, 100), (45, 200), target=target).target
    assert (line is not None) == drawn
    if line:
        assert 0 < line.y < HEIGHT
        assert line.value == Decimal(target)


def test_a_targets_label_stands_where_the_prices_are_not() -> None:
    near_at_the_end = chart((0, 200), (45, 101), target="100").target
    near_at_the_start = chart((0, 101), (45, 200), target="100").target
    assert near_at_the_end is not None
    assert near_at_the_start is not None
    assert (near_at_the_end.x, near_at_the_end.anchor) == (0, "start")
    assert (near_at_the_start.x, near_at_the_start.anchor) == (100, "end")


def test_months_are_marked_at_their_first_day_and_not_at_the_edge() -> None:
    assert [tick.at.strftime("%d %b") for tick in chart((0, 5)).dates] == ["01 Feb", "01 Mar"]
    assert [tick.x for tick in chart((0, 5)).dates] == [34.44, 65.56]


def test_grid_lines_are_round_and_leave_room_for_the_price_now() -> None:
    drawn = chart((0, "153.50"), (45, "169.00"), (80, "161.00"))
    assert [line.value for line in drawn.grid] == [155, 165, 170]
    assert all(abs(line.y - drawn.now.y) >= CLEARANCE for line in drawn.grid)


@given(
    st.lists(st.decimals("0.01", "99999999.99", places=2), min_size=1, max_size=50),
    st.decimals("0.01", "1000", places=2),
)
def test_everything_lies_within_the_plot_whatever_the_prices(prices: list[Decimal], target: Decimal) -> None:
    drawn = chart(*((90 * i / len(prices), str(price)) for i, price in enumerate(prices)), target=str(target))
    assert "E" not in drawn.line.upper().replace("H", "").replace("V", "").replace("M", "")
    marks = [mark for mark in (drawn.low, drawn.high, drawn.now, drawn.target) if mark]
    assert all(0 <= mark.y <= HEIGHT and 0 <= mark.x <= 100 for mark in marks)
    assert all(0 <= line.y <= HEIGHT for line in drawn.grid)
    assert len(drawn.grid) <= 6
    assert len({line.value for line in drawn.grid}) == len(drawn.grid)


def test_ten_thousand_changes_make_a_short_path_that_keeps_the_extremes() -> None:
    points = [(90 * i / 10_000, 100 + i % 7) for i in range(10_000)]
    points[5_003] = (points[5_003][0], 500)
    points[5_004] = (points[5_004][0], 20)
    drawn = chart(*points)
    assert drawn.high is not None
    assert len(drawn.line) < 60_000
    drawn_heights = set(numbers(drawn.line))
    assert {drawn.high.y, drawn.low.y, drawn.now.y} <= drawn_heights
    assert drawn.line.count("V") <= 4 * WIDTH
