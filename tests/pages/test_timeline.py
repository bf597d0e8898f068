"""The best price over merchants as steps, and what a target means beside it. Pure."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.timeline import (
    Observation,
    Step,
    best_price_steps,
    meaning_of_target,
    price_at,
    suggested_targets,
)

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=90)


def seen(day: float, merchant: str, price: str | int) -> Observation:
    return Observation(SINCE + timedelta(days=day), merchant, Decimal(price))


def steps(*observations: Observation) -> list[tuple[float, str, int]]:
    found = best_price_steps(observations, since=SINCE, until=UNTIL)
    return [((step.at - SINCE) / timedelta(days=1), step.merchant_id, int(step.price_usd)) for step in found]


def line(*prices: str | int) -> list[Step]:
    """One step a day."""
    return [Step(SINCE + timedelta(days=day), "x", Decimal(price)) for day, price in enumerate(prices)]


def test_the_lowest_of_what_each_merchant_last_asked_is_the_best() -> None:
    assert steps(seen(1, "x", 100), seen(2, "y", 90), seen(3, "y", 110), seen(4, "x", 120)) == [
        (1, "x", 100),
        (2, "y", 90),
        (3, "x", 100),
        (4, "y", 110),
    ]


def test_a_price_that_does_not_change_the_best_makes_no_step() -> None:
    assert steps(seen(1, "x", 100), seen(2, "y", 150), seen(3, "y", 140), seen(4, "x", 100)) == [(1, "x", 100)]


def test_what_was_asked_before_the_period_counts_from_its_beginning() -> None:
    assert steps(seen(-30, "x", 100), seen(-20, "y", 80), seen(-10, "y", 120), seen(5, "x", 90)) == [
        (0, "x", 100),
        (5, "x", 90),
    ]


def test_what_comes_after_the_period_does_not_count() -> None:
    assert steps(seen(1, "x", 100), seen(91, "x", 50)) == [(1, "x", 100)]


def test_observations_may_come_in_any_order() -> None:
    assert steps(seen(3, "x", 80), seen(1, "x", 100)) == [(1, "x", 100), (3, "x", 80)]


def test_of_two_prices_of_one_merchant_at_one_time_the_later_given_holds() -> None:
    assert steps(seen(1, "x", 100), seen(1, "x", 70)) == [(1, "x", 70)]


def test_at_one_price_the_merchant_who_was_first_stays_best() -> None:
    assert steps(seen(1, "y", 100), seen(2, "x", 100), seen(3, "y", 101)) == [(1, "y", 100), (3, "x", 100)]


def test_no_observation_no_step() -> None:
    assert steps() == []


@given(
    st.lists(
        st.builds(
            seen,
            st.integers(-20, 100),
            st.sampled_from("xyz"),
            st.integers(1, 9),
        )
    )
)
def test_at_every_time_the_steps_give_the_lowest_of_the_last_prices(observations: list[Observation]) -> None:
    found = best_price_steps(observations, since=SINCE, until=UNTIL)
    assert [step.at for step in found] == sorted({step.at for step in found})
    for day in range(91):
        when = SINCE + timedelta(days=day)
        last: dict[str, Decimal] = {}
        for one in sorted(observations, key=lambda one: one.at):
            if one.at <= when:
                last[one.merchant_id] = one.price_usd
        assert price_at(found, when) == min(last.values(), default=None)


def test_the_price_before_the_first_step_is_unknown() -> None:
    assert price_at(line(5), SINCE - timedelta(seconds=1)) is None
    assert price_at(line(5, 6), SINCE + timedelta(days=1)) == 6


@pytest.mark.parametrize(
    ("target", "times"),
    [("89", 0), ("90", 2), ("95", 2), ("99.99", 2), ("100", 1), ("200", 1)],
)
def test_each_stay_at_or_below_a_target_counts_once(target: str, times: int) -> None:
    assert meaning_of_target(line(100, 95, 90, 100, 90, 90, 100), Decimal(target)).times_seen == times


def test_a_stay_that_lasts_until_now_counts() -> None:
    assert meaning_of_target(line(100, 90), Decimal(90)).times_seen == 1


def test_a_target_stands_beside_now_low_and_high() -> None:
    meaning = meaning_of_target(line(100, 80, 120, 110), Decimal("96.80"))
    assert (meaning.now, meaning.low, meaning.high) == (110, 80, 120)
    assert meaning.percent_below_now == 12
    assert not meaning.already_met


@pytest.mark.parametrize("target", ["110", "111"])
def test_a_target_at_or_above_now_is_met_already(target: str) -> None:
    assert meaning_of_target(line(110), Decimal(target)).already_met


def test_a_target_without_any_price_means_nothing_yet() -> None:
    meaning = meaning_of_target([], Decimal(5))
    assert (meaning.now, meaning.low, meaning.high, meaning.times_seen) == (None, None, None, 0)
    assert meaning.percent_below_now is None
    assert not meaning.already_met


def test_suggestions_are_round_below_now_and_hold_the_low() -> None:
    assert suggested_targets(line("153.50", "169.00")) == [Decimal("160.00"), Decimal("153.50"), Decimal("152.00")]
    assert suggested_targets(line("27.80")) == [Decimal("26.00"), Decimal("25.00")]


def test_nothing_is_suggested_where_nothing_sensible_lies_below() -> None:
    assert suggested_targets([]) == []
    assert suggested_targets(line("0.40")) == []
