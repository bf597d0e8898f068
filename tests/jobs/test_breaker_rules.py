"""When a breaker opens, is tried and closes: the table, and what holds for every course of things."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.breaker_rules import (
    REMEMBERED,
    Limits,
    State,
    after_failure,
    after_success,
    may_probe,
    with_probe,
    without_probe,
)
from jobs.retry import wait_for_other_side

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
S = timedelta(seconds=1)
LIMITS = Limits(failures=5, memory=120 * S, first=5 * S, longest=60 * S, lease=60 * S)


def fail(
    state: State, *, at: timedelta = timedelta(0), asked: timedelta = timedelta(0), token: int | None = None
) -> State:
    longest = max  # of uniform's bounds: each wait as long as it can be
    return after_failure(state, now=NOW + at, retry_after=asked, token=token, limits=LIMITS, uniform=longest)


def failures(count: int, state: State | None = None, *, every: timedelta = S) -> State:
    state = state or State()
    for number in range(count):
        state = fail(state, at=number * every)
    return state


@pytest.mark.parametrize(
    ("state", "is_open"),
    [
        (failures(4), False),
        (failures(5), True),
        (failures(5, every=119 * S), True),
        (failures(5, every=121 * S), False),  # each was forgotten before the next
        (failures(4, replace(failures(1), succeeded=5)), True),  # five of ten
        (failures(4, replace(failures(1), succeeded=6)), False),
        (fail(State(), asked=30 * S), True),  # the other side has said when: nobody needs to find out
    ],
)
def test_it_opens_after_failures_that_are_near_and_no_fewer_than_the_successes(state: State, is_open: bool) -> None:
    assert state.is_open is is_open


def test_the_waits_double_to_a_minute_and_are_never_shorter_than_the_other_side_asked() -> None:
    state, waits = failures(5, every=timedelta(0)), []
    for token in range(6):
        assert state.probe_at is not None
        waits.append((state.probe_at - NOW).total_seconds())
        state = fail(with_probe(state, now=NOW, token=token, limits=LIMITS), token=token)
    assert waits == [5, 10, 20, 40, 60, 60]
    asked = fail(with_probe(state, now=NOW, token=9, limits=LIMITS), token=9, asked=300 * S)
    assert asked.probe_at == NOW + 300 * S


def test_half_an_hour_away_costs_some_forty_tries_and_never_more_than_one_at_a_time() -> None:
    for jitter in (0.5, 1.0):
        state = failures(5, every=timedelta(0))
        now, tries = NOW, 0
        while now < NOW + timedelta(minutes=30):
            now = state.probe_at or now
            assert may_probe(state, now)
            state = with_probe(state, now=now, token=tries, limits=LIMITS)
            assert not may_probe(state, now + 59 * S), "another may not try beside it"
            now += 10 * S  # it hangs
            state = after_failure(
                state,
                now=now,
                retry_after=timedelta(0),
                token=tries,
                limits=LIMITS,
                uniform=lambda low, high, part=jitter: part,  # type: ignore[misc]
            )
            tries += 1
        assert tries <= 60


def test_the_probe_alone_closes_it_and_what_began_before_does_not() -> None:
    state = with_probe(failures(5), now=NOW, token=7, limits=LIMITS)
    assert after_success(state, count=3, token=None, limits=LIMITS) == state
    assert after_success(state, count=1, token=8, limits=LIMITS) == state
    assert not after_success(state, count=1, token=7, limits=LIMITS).is_open
    late = fail(state, at=S)
    assert (late.probe_at, late.probe_token) == (state.probe_at, 7)


def test_one_that_closes_and_opens_at_once_goes_on_where_its_waits_were_and_one_well_for_long_begins_anew() -> None:
    state = failures(5)
    for token in range(3):
        state = fail(with_probe(state, now=NOW, token=token, limits=LIMITS), token=token)
    closed = after_success(with_probe(state, now=NOW, token=9, limits=LIMITS), count=1, token=9, limits=LIMITS)
    assert failures(5, closed).probe_at == NOW + 4 * S + 60 * S
    assert (fail(closed, at=121 * S, asked=S).probe_at or NOW) - NOW == 121 * S + 5 * S


def test_a_lost_probe_is_made_by_another_when_its_lease_ends_and_one_given_back_at_once() -> None:
    state = failures(5, every=timedelta(0))
    due = NOW + 5 * S
    taken = with_probe(state, now=due, token=7, limits=LIMITS)
    assert not may_probe(state, due - S)
    assert may_probe(taken, due + 60 * S)
    assert may_probe(without_probe(taken, token=7), due)
    assert without_probe(taken, token=8) == taken


def test_nothing_is_counted_while_nothing_has_failed() -> None:
    assert after_success(State(), count=1_000, token=None, limits=LIMITS) == State()


@given(st.lists(st.booleans(), max_size=300))
def test_the_counts_stay_small_and_a_breaker_that_is_open_knows_when_it_is_tried(course: list[bool]) -> None:
    state = State()
    for number, well in enumerate(course):
        said = after_success(state, count=1, token=None, limits=LIMITS)
        state = said if well else fail(state, at=number * S)
        assert state.failed + state.succeeded <= REMEMBERED * LIMITS.failures
        assert state.is_open is (state.probe_at is not None)


@pytest.mark.parametrize(
    ("age", "asked", "until_probe", "lowest", "highest"),
    [
        (0.1, 0, 0, 0, 1),
        (20, 0, 0, 0, 20),
        (9_999, 0, 0, 0, 300),
        (20, 45, 0, 45, 45),
        (20, 0, 10, 11, 20),
        (20, 600, 600, 601, 900),
    ],
)
def test_what_waits_for_the_other_side_comes_back_after_the_next_probe_and_pays_nothing(
    age: float, asked: float, until_probe: float, lowest: float, highest: float
) -> None:
    for draw, expected in ((min, lowest), (max, highest)):
        retry = wait_for_other_side(age=age, retry_after=asked, until_probe=until_probe, longest=300, uniform=draw)
        assert (retry.delay, retry.charged) == (expected, False)
