"""What follows a try: pure, by table."""

from datetime import timedelta

import pytest

from alerts.channels.rules import FAILING, GONE, UNREADABLE, Again, Came, Limits, Outcome, Settled, after_try

LIMITS = Limits(delays=(timedelta(seconds=10), timedelta(seconds=60)), longest_wait=timedelta(hours=1), give_ups=3)


def step(
    outcome: Outcome, *, tries: int = 0, given_up: int = 0, wait: float = 0.0, low: bool = True
) -> Settled | Again:
    return after_try(
        outcome,
        tries=tries,
        given_up=given_up,
        wait=wait,
        limits=LIMITS,
        uniform=lambda lowest, highest: lowest if low else highest,
    )


@pytest.mark.parametrize(
    ("came", "tries", "given_up", "expected"),
    [
        (Came.TAKEN, 0, 0, Settled(taken=True)),
        (Came.TAKEN, 2, 2, Settled(taken=True)),
        (Came.GONE, 0, 0, Settled(taken=False, off=GONE)),
        (Came.UNREADABLE, 0, 0, Settled(taken=False, off=UNREADABLE)),
        (Came.FAILED, 0, 0, Again(10.0)),
        (Came.FAILED, 1, 0, Again(60.0)),
        (Came.FAILED, 2, 0, Settled(taken=False)),
        (Came.FAILED, 2, 1, Settled(taken=False)),
        (Came.FAILED, 2, 2, Settled(taken=False, off=FAILING.format(count=3, said="answered 500"))),
        (Came.FAILED, 0, 2, Again(10.0)),
    ],
)
def test_a_try_is_followed_by(came: Came, tries: int, given_up: int, expected: Settled | Again) -> None:
    assert step(Outcome(came, "answered 500"), tries=tries, given_up=given_up) == expected


@pytest.mark.parametrize(("asked", "delay"), [(0.0, 15.0), (12.0, 15.0), (300.0, 300.0), (999_999.0, 3_600.0)])
def test_a_receivers_wait_is_a_floor_up_to_a_bound(asked: float, delay: float) -> None:
    assert step(Outcome(Came.FAILED, "answered 429", retry_after=asked), low=False) == Again(delay)


def test_one_that_was_postponed_waits_out_the_channels_rest_and_costs_no_try() -> None:
    assert step(Outcome(Came.POSTPONED), tries=0, wait=7.0) == Again(8.0, counts=False)
