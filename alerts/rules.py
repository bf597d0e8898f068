"""When an alert speaks: the state machine as one pure function. matching.py applies what is decided here.

armed → fired when a price that is still current is at or below the target; fired → armed when no relevant offer is
at or below it any more, be it dearer or gone; a fired alert says nothing further. What comes back at the very price
that was mailed is no news. Every verdict carries its reason in the reader's words.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class State(StrEnum):
    """The values of Alert.State that matching sees; a paused alert is not looked at."""

    PENDING = "pending"
    ARMED = "armed"
    FIRED = "fired"


class Outcome(StrEnum):
    """The values of Decision.Outcome."""

    MAILED = "mailed"
    NOT_MAILED = "not_mailed"
    ARMED = "armed"


@dataclass(frozen=True)
class Verdict:
    """What becomes of the alert, and the row in its log."""

    state: State
    outcome: Outcome
    reason: str


def judge_price(
    *,
    state: State,
    threshold: Decimal,
    price: Decimal,
    current: bool,
    best_after: Decimal | None,
    told_at: Decimal | None,
) -> Verdict | None:
    """One price event against one alert; None when there is nothing to say or to change.

    price       the event's new price, from a merchant this alert listens to
    current     whether this is still that merchant's price as we look
    best_after  the lowest relevant offer once this event had happened
    told_at     the price of the last mail
    """
    if state is State.PENDING:
        return None  # its own first check, which is queued behind this event, looks at the price as it is by then
    if state is State.FIRED:
        if best_after is None or best_after > threshold:
            return Verdict(State.ARMED, Outcome.ARMED, "the price rose above your target: watching again")
        if price <= threshold:
            told = f" at ${told_at:,.2f}" if told_at is not None else ""
            return Verdict(
                State.FIRED, Outcome.NOT_MAILED, f"you were told{told}; the next mail is after it has risen again"
            )
        return None
    if price > threshold:
        return None
    if not current:
        return Verdict(State.ARMED, Outcome.NOT_MAILED, "superseded: a newer price had arrived before we looked")
    return Verdict(State.FIRED, Outcome.MAILED, "at your target" if price == threshold else "below your target")


def judge_withdrawal(*, state: State, threshold: Decimal, best_after: Decimal | None) -> Verdict | None:
    """A merchant offers the wine no longer; `best_after` is the lowest relevant offer that is left."""
    if state is State.FIRED and (best_after is None or best_after > threshold):
        return Verdict(State.ARMED, Outcome.ARMED, "no longer offered at your target: watching again")
    return None


def judge_return(
    *, state: State, threshold: Decimal, price: Decimal, current: bool, told_of_it: bool
) -> Verdict | None:
    """A merchant offers the wine again at the price it had. `told_of_it`: the last mail was about just this offer."""
    if state is not State.ARMED or price > threshold:
        return None
    if not current:
        return Verdict(State.ARMED, Outcome.NOT_MAILED, "superseded: a newer price had arrived before we looked")
    if told_of_it:
        return Verdict(State.FIRED, Outcome.NOT_MAILED, f"offered again at ${price:,.2f}, of which you were told")
    where = "at" if price == threshold else "below"
    return Verdict(State.FIRED, Outcome.MAILED, f"offered again, {where} your target")


def judge_first_check(*, state: State, threshold: Decimal, best_now: Decimal | None, current: bool) -> Verdict | None:
    """A new or changed alert against the best relevant offer; None if it was checked already.

    `current`: whether that offer is still so as we look; if not, the event that changed it stands next in line.
    """
    if state is not State.PENDING:
        return None
    if best_now is None:
        return Verdict(State.ARMED, Outcome.ARMED, "first check: nobody offers it now")
    if best_now <= threshold and not current:
        return Verdict(State.ARMED, Outcome.NOT_MAILED, "superseded: a newer price had arrived before we looked")
    if best_now <= threshold:
        return Verdict(State.FIRED, Outcome.MAILED, "first check: already at or below your target")
    return Verdict(State.ARMED, Outcome.ARMED, "first check: above your target")
