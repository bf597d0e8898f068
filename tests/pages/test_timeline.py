"""The best price over merchants as steps, and what a target means beside it. Pure."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

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


def seen(day: float, merchant: str, price: str | int | None) -> Observation:
    """A price of None: the merchant offers it no longer."""
    return Observation(SINCE + timedelta(days=day), merchant, None if price is None else Decimal(price))


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
            st.none() | st.integers(1, 9),
        )
    )
)
def test_at_every_time_the_steps_give_the_lowest_of_the_last_prices(observations: list[Observation]) -> None:
    found = best_price_steps(observations, since=SINCE, until=UNTIL)
    assert [step.at for step in found] == sorted({step.at for step in found})
    for day in range(91):
        when = SINCE + timedelta(days=day)
        last: dict[str, Decimal | None] = {}
        for one in sorted(observations, key=lambda one: one.at):
            if one.at <= when:
                last[one.merchant_id] = one.price_usd
        assert price_at(found, when) == min((price for price in last.values() if price is not None), default=None)
    assert all(step.until is None or step.at < step.until for step in found)
    assert all(a.until is None or a.until < b.at for a, b in pairwise(found))


def gaps(*observations: Observation) -> list[tuple[float, float | None]]:
    """From when to when each step holds, in days; None: until the next one."""
    found = best_price_steps(observations, since=SINCE, until=UNTIL)
    day = timedelta(days=1)
    return [((s.at - SINCE) / day, None if s.until is None else (s.until - SINCE) / day) for s in found]


def test_where_nobody_offers_there_is_a_gap() -> None:
    assert gaps(seen(1, "x", 100), seen(3, "x", None), seen(5, "x", 100)) == [(1, 3), (5, None)]
    assert gaps(seen(1, "x", 100), seen(3, "x", None)) == [(1, 3)]
    assert gaps(seen(-9, "x", 100), seen(-5, "x", None), seen(5, "y", 90)) == [(5, None)]
    assert gaps(seen(1, "x", None)) == []


def test_while_another_merchant_offers_it_there_is_none() -> None:
    assert steps(seen(1, "x", 100), seen(2, "y", 120), seen(3, "x", None), seen(5, "x", 110)) == [
        (1, "x", 100),
        (3, "y", 120),
        (5, "x", 110),
    ]
    assert gaps(seen(1, "x", 100), seen(3, "x", None), seen(3, "y", 100)) == [(1, None), (3, None)]


def test_gone_and_back_at_one_time_is_never_gone() -> None:
    assert gaps(seen(1, "x", 100), seen(3, "x", None), seen(3, "x", 100)) == [(1, None)]
    assert gaps(seen(1, "x", 100), seen(3, "x", 90), seen(3, "x", None)) == [(1, 3)]


def test_a_gap_ends_a_stay_and_leaves_no_price_now() -> None:
    found = best_price_steps(
        [seen(1, "x", 90), seen(3, "x", None), seen(5, "x", 90), seen(8, "x", None)], since=SINCE, until=UNTIL
    )
    meaning = meaning_of_target(found, Decimal(95))
    assert (meaning.times_seen, meaning.now, meaning.low) == (2, None, 90)
    assert suggested_targets(found) == []
    assert price_at(found, SINCE + timedelta(days=4)) is None
    assert price_at(found, SINCE + timedelta(days=3)) is None


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
