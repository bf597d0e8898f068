"""The alert state machine as a table."""

from decimal import Decimal

import pytest

from alerts.rules import Outcome, State, judge_first_check, judge_price

TARGET = Decimal("160.00")
BELOW, AT, ABOVE = Decimal("154.00"), Decimal("160.00"), Decimal("161.00")


@pytest.mark.parametrize(
    ("state", "price", "current", "best_after", "expected"),
    [
        (State.ARMED, BELOW, True, BELOW, (State.FIRED, Outcome.MAILED)),
        (State.ARMED, AT, True, AT, (State.FIRED, Outcome.MAILED)),
        (State.ARMED, ABOVE, True, ABOVE, None),
        (State.ARMED, BELOW, False, BELOW, (State.ARMED, Outcome.NOT_MAILED)),
        (State.FIRED, BELOW, True, BELOW, (State.FIRED, Outcome.NOT_MAILED)),
        (State.FIRED, ABOVE, True, ABOVE, (State.ARMED, Outcome.ARMED)),
        (State.FIRED, ABOVE, True, None, (State.ARMED, Outcome.ARMED)),
        # One merchant asks more, another still asks less than the target: nothing has changed for the reader.
        (State.FIRED, ABOVE, True, BELOW, None),
        (State.PENDING, BELOW, True, BELOW, None),
    ],
)
def test_what_a_price_does_to_an_alert(
    state: State, price: Decimal, current: bool, best_after: Decimal | None, expected: tuple[State, Outcome] | None
) -> None:
    verdict = judge_price(
        state=state, threshold=TARGET, price=price, current=current, best_after=best_after, told_at=BELOW
    )
    assert (verdict and (verdict.state, verdict.outcome)) == expected


@pytest.mark.parametrize(
    ("state", "best_now", "current", "expected"),
    [
        (State.PENDING, None, False, (State.ARMED, Outcome.ARMED)),
        (State.PENDING, ABOVE, True, (State.ARMED, Outcome.ARMED)),
        (State.PENDING, ABOVE, False, (State.ARMED, Outcome.ARMED)),
        (State.PENDING, AT, True, (State.FIRED, Outcome.MAILED)),
        (State.PENDING, BELOW, True, (State.FIRED, Outcome.MAILED)),
        (State.PENDING, BELOW, False, (State.ARMED, Outcome.NOT_MAILED)),
        (State.ARMED, BELOW, True, None),
        (State.FIRED, BELOW, True, None),
    ],
)
def test_what_the_first_check_does(
    state: State, best_now: Decimal | None, current: bool, expected: tuple[State, Outcome] | None
) -> None:
    verdict = judge_first_check(state=state, threshold=TARGET, best_now=best_now, current=current)
    assert (verdict and (verdict.state, verdict.outcome)) == expected


def test_every_verdict_says_why_in_the_readers_words() -> None:
    verdict = judge_price(
        state=State.FIRED, threshold=TARGET, price=BELOW, current=True, best_after=BELOW, told_at=Decimal("1154.5")
    )
    assert verdict is not None
    assert verdict.reason == "you were told at $1,154.50; the next mail is after it has risen again"
