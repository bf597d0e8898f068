"""Prices by the day, without a database: what a day's row says, and that order and repetition do not matter."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.daily import Day, Ledger, Standing
from pricing.timeline import Observation, best_price_steps, price_at

FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def at(day: float, price: str | None, merchant: str = "a") -> Observation:
    return Observation(FIRST + timedelta(days=day), merchant, None if price is None else Decimal(price))


def rows(*observations: Observation) -> list[Day]:
    ledger = Ledger()
    for each in observations:
        ledger.enter(each)
    return ledger.changed


def figures(day: Day) -> tuple[str, ...]:
    return tuple(str(each) for each in (day.day.day, day.low, day.high, day.close, day.average, day.offers))


def test_a_day_has_the_low_and_high_of_the_best_price_and_ends_with_what_is_asked() -> None:
    made = rows(at(0.1, "20"), at(0.2, "24", "b"), at(0.5, "30"), at(2.5, "18", "b"), at(2.6, "40", "b"))
    assert [figures(day) for day in made] == [
        ("1", "20", "24", "24", "27.00", "2"),
        ("3", "18", "30", "30", "35.00", "2"),
    ]


def test_a_day_opens_as_the_one_before_it_ended() -> None:
    assert [figures(day) for day in rows(at(0, "20"), at(4, "25"))][1] == ("5", "20", "25", "25", "25.00", "1")


def test_where_nobody_offers_there_is_no_price() -> None:
    made = rows(at(0, "20"), at(1, None), at(3, "22"))
    assert [figures(day)[1:4] for day in made] == [("20", "20", "20"), ("20", "20", "None"), ("22", "22", "22")]


def test_what_comes_late_is_entered_where_it_belongs_until_the_merchant_said_something_else() -> None:
    made = rows(at(0, "20"), at(2, "30", "b"), at(6, "25"), at(1, "15", "b"), at(1, "15", "b"))
    assert [figures(day)[:4] for day in made] == [
        ("1", "20", "20", "20"),
        ("2", "15", "20", "15"),  # there was no row for it
        ("3", "15", "20", "20"),  # b said 30 on this day; it opened at 15
        ("7", "20", "25", "25"),
    ]


def test_an_older_price_of_the_same_day_is_not_the_price_now_but_could_be_bought_at() -> None:
    assert [figures(day)[:4] for day in rows(at(0.5, "20"), at(0.4, "12"), at(0.3, "90"))] == [("1", "12", "20", "20")]


def test_only_days_that_change_are_written() -> None:
    first = rows(at(0, "20"))
    ledger = Ledger(first)
    ledger.enter(at(0, "20"))
    assert ledger.changed == []


observed = st.builds(
    at,
    st.integers(0, 600).map(lambda hours: hours / 24),
    st.sampled_from([None, "10", "11", "12", "13", "14"]),
    st.sampled_from("abc"),
)


@given(st.lists(observed, max_size=30, unique_by=lambda seen: (seen.at, seen.merchant_id)))
def test_in_order_the_rows_are_what_the_step_line_says(observations: list[Observation]) -> None:
    in_order = sorted(observations, key=lambda each: (each.at, each.merchant_id))
    until = FIRST + timedelta(days=40)
    steps = best_price_steps(in_order, since=FIRST, until=until)
    for day in rows(*in_order):
        opens = datetime.combine(day.day, datetime.min.time(), UTC)
        hours = [price_at(steps, opens + timedelta(hours=hour)) for hour in range(24)]
        offered = [price for price in hours if price is not None]
        assert day.close == hours[-1]
        if offered:
            assert day.low is not None
            assert day.high is not None
            # Two prices of one moment are no step, but the day has seen both.
            assert day.low <= min(offered) <= max(offered) <= day.high


@given(st.lists(observed, max_size=12, unique_by=lambda seen: (seen.at, seen.merchant_id)), st.randoms())
def test_in_any_order_and_repeated_the_days_end_alike(observations: list[Observation], chance: object) -> None:
    shuffled = [*observations, *observations[:3]]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    in_order = rows(*sorted(observations, key=lambda each: each.at))
    mixed = {day.day: day for day in rows(*shuffled)}
    for day in in_order:
        assert (mixed[day.day].close, mixed[day.day].offers) == (day.close, day.offers)


# --- What is read from it ----------------------------------------------------------------------------------------


def standing(*observations: Observation, today: int) -> Standing:
    return Standing(date(2026, 3, 1) + timedelta(days=today), rows(*observations))


WAVES = (at(0, "20"), at(10, "15"), at(12, "20"), at(20, "14"), at(40, "19"), at(60, "15"), at(61, "21"))


@pytest.mark.parametrize(("price", "times"), [("13", 0), ("14", 1), ("15", 3), ("19", 2), ("20", 1), ("99", 1)])
def test_a_stay_at_or_below_a_price_counts_once_however_long(price: str, times: int) -> None:
    assert standing(*WAVES, today=70).times_at_or_below(Decimal(price)) == times


def test_a_period_begins_with_the_price_it_found() -> None:
    here = standing(*WAVES, today=70)
    assert (here.low(7), here.high(7)) == (Decimal(21), Decimal(21))
    assert (here.low(30), here.high(30)) == (Decimal(14), Decimal(21))  # which is what that day opened at
    assert (here.low(29), here.high(29)) == (Decimal(15), Decimal(21))
    assert (here.low(8), here.high(20)) == (Decimal(21), Decimal(21))
    assert (here.low(90), here.high(90)) == (Decimal(14), Decimal(21))
    assert here.low(8) == Decimal(21)
    assert here.low(9) == Decimal(15)  # on that day it still cost this
    assert (here.now, here.week_ago) == (Decimal(21), Decimal(21))
    assert standing(*WAVES, today=67).week_ago == Decimal(15)
    assert standing(*WAVES, today=66).week_ago == Decimal(19)


def test_of_a_wine_without_prices_nothing_is_known() -> None:
    here = Standing(date(2026, 3, 1))
    assert (here.now, here.low(90), here.high(90), here.week_ago, here.times_at_or_below(Decimal(9))) == (
        *(None, None, None, None),
        0,
    )
