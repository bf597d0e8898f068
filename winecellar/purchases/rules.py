"""What happens next with a purchase: state and outcome → next state, what becomes of the bottles, what is asked for.

Pure, and total: every state knows every event. Called by books.py alone, which writes what is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from winecellar.purchases import saga
from winecellar.purchases.events import CALL_OFF_PURCHASE, CHARGE_PURCHASE, REFUND_PURCHASE


class State(StrEnum):
    CHARGING = "charging"  # bottles reserved, the charge is asked for
    ASKING = "asking"  # bottles reserved, and no answer to that: it is looked up
    LAPSED = "lapsed"  # the reservation ran out before we knew; the charge is called off
    CALLING_OFF = "calling_off"  # a person wants it undone, and we do not know yet whether money moved
    NOTIFYING = "notifying"  # charged and sold; the mails are on their way
    REFUNDING = "refunding"  # charged and not sold
    CHARGE_UNCLEAR = "charge_unclear"  # a person must look
    REFUND_UNCLEAR = "refund_unclear"  # a person must look
    COMPLETED = "completed"
    RELEASED = "released"  # ended, and no money moved
    REFUNDED = "refunded"  # ended, and all money went back
    RESOLVED = "resolved"  # ended by a person, who says how


class Event(StrEnum):
    CHARGED = "charged"
    DECLINED = "declined"
    CANCELLED = "cancelled"  # it is certain that the charge will never be made
    PENDING = "pending"  # the provider has it and does not know yet
    NO_ANSWER = "no_answer"
    REFUND_MADE = "refund_made"
    REFUND_FAILED = "refund_failed"
    NOTIFIED = "notified"  # every mail was sent, or cannot be
    TIME_UP = "time_up"  # the reservation's
    PATIENCE_OVER = "patience_over"  # nothing is known for so long that a person should look
    RESUME = "resume"
    COMPENSATE = "compensate"
    RESOLVE = "resolve"


class Bottles(StrEnum):
    KEEP = "keep"
    RELEASE = "release"  # the reservation ends
    SELL = "sell"  # what was reserved leaves the stock
    TAKE = "take"  # nothing was reserved any more; they leave the stock all the same


class Mails(StrEnum):
    NONE = "none"
    SALE = "sale"  # to the buyer and to the merchant
    REFUND = "refund"  # to the buyer


RESERVES = frozenset({State.CHARGING, State.ASKING})
ENDED = frozenset({State.COMPLETED, State.RELEASED, State.REFUNDED, State.RESOLVED})
NEEDS_PERSON = frozenset({State.CHARGE_UNCLEAR, State.REFUND_UNCLEAR})
FOR_PEOPLE = frozenset({Event.RESUME, Event.COMPENSATE, Event.RESOLVE})
# Which step a state is in.
STEP = {
    State.CHARGING: saga.CHARGE,
    State.ASKING: saga.CHARGE,
    State.LAPSED: saga.CHARGE,
    State.CALLING_OFF: saga.CHARGE,
    State.CHARGE_UNCLEAR: saga.CHARGE,
    State.REFUNDING: saga.CHARGE,
    State.REFUND_UNCLEAR: saga.CHARGE,
    State.NOTIFYING: saga.NOTIFY,
}


@dataclass(frozen=True)
class Next:
    """`command`: published with the change, `later`: after a while, for something was pending."""

    state: State
    bottles: Bottles = Bottles.KEEP
    command: str = ""
    later: bool = False
    mails: Mails = Mails.NONE


class RefusedError(ValueError):
    """A person asks for what cannot be done in this state; the text says why."""


def decide(state: State, event: Event, *, there: bool) -> Next:
    """What follows. `there`: so many bottles are in stock that nobody has reserved. Raises RefusedError for people."""
    if event in FOR_PEOPLE:
        return _for_person(state, event)
    match state:
        case State.CHARGING | State.ASKING:
            return _reserved(state, event)
        case State.LAPSED | State.CALLING_OFF:
            return _called_off(state, event, there=there)
        case State.CHARGE_UNCLEAR:
            return _ended_without_us(event) or Next(state)
        case State.NOTIFYING | State.COMPLETED:
            if event is Event.REFUND_MADE:  # by somebody at the provider: the merchant must be told, if it is not late
                return Next(State.REFUND_UNCLEAR)
            done = event is Event.NOTIFIED and state is State.NOTIFYING
            return Next(State.COMPLETED if done else state)
        case State.REFUNDING:
            return _refunding(event)
        case State.RELEASED if event is Event.CHARGED:  # what must not happen, and is put right if it does
            return Next(State.REFUNDING, command=REFUND_PURCHASE)
        case State.REFUNDED if event is Event.REFUND_FAILED:  # days later: the buyer's bank sent it back
            return Next(State.REFUND_UNCLEAR)
        case _:
            return Next(state)


def _reserved(state: State, event: Event) -> Next:
    match event:
        case Event.CHARGED:
            return Next(State.NOTIFYING, Bottles.SELL, mails=Mails.SALE)
        case Event.DECLINED | Event.CANCELLED:
            return Next(State.RELEASED, Bottles.RELEASE)
        case Event.REFUND_MADE:
            return Next(State.REFUNDED, Bottles.RELEASE, mails=Mails.REFUND)
        case Event.NO_ANSWER:
            return Next(State.ASKING)
        case Event.PENDING:
            return Next(State.ASKING, command=CHARGE_PURCHASE, later=True)
        case Event.TIME_UP:
            return Next(State.LAPSED, Bottles.RELEASE, command=CALL_OFF_PURCHASE)
        case _:
            return Next(state)


def _called_off(state: State, event: Event, *, there: bool) -> Next:
    if event is Event.CHARGED and state is State.LAPSED and there:  # the buyer still wants them, and we have them
        return Next(State.NOTIFYING, Bottles.TAKE, mails=Mails.SALE)
    if event is Event.PENDING:
        return Next(state, command=CALL_OFF_PURCHASE, later=True)
    if event is Event.PATIENCE_OVER:
        return Next(State.CHARGE_UNCLEAR)
    return _ended_without_us(event) or Next(state)


def _ended_without_us(event: Event) -> Next | None:
    """Where no bottles are reserved: how the payment turned out ends it."""
    match event:
        case Event.CHARGED:
            return Next(State.REFUNDING, command=REFUND_PURCHASE)
        case Event.DECLINED | Event.CANCELLED:
            return Next(State.RELEASED)
        case Event.REFUND_MADE:
            return Next(State.REFUNDED, mails=Mails.REFUND)
        case _:
            return None


def _refunding(event: Event) -> Next:
    match event:
        case Event.REFUND_MADE:
            return Next(State.REFUNDED, mails=Mails.REFUND)
        case Event.REFUND_FAILED | Event.PATIENCE_OVER:
            return Next(State.REFUND_UNCLEAR)
        case Event.PENDING:
            return Next(State.REFUNDING, command=REFUND_PURCHASE, later=True)
        case _:
            return Next(State.REFUNDING)


def _for_person(state: State, event: Event) -> Next:
    if state in ENDED:
        raise RefusedError("It has ended. What ended is not begun again; look at its money and its bottles by hand.")
    match event, state:
        case Event.RESOLVE, State.CHARGE_UNCLEAR | State.REFUND_UNCLEAR:
            return Next(State.RESOLVED)
        case Event.RESOLVE, _:
            raise RefusedError("It is still being worked on. Only what waits for a person can be marked as resolved.")
        case Event.RESUME, State.CHARGING | State.ASKING:
            return Next(state, command=CHARGE_PURCHASE)
        case Event.RESUME, State.LAPSED | State.CALLING_OFF:
            return Next(state, command=CALL_OFF_PURCHASE)
        case Event.RESUME, State.CHARGE_UNCLEAR:
            return Next(State.LAPSED, command=CALL_OFF_PURCHASE)
        case Event.RESUME, State.REFUNDING | State.REFUND_UNCLEAR:
            return Next(State.REFUNDING, command=REFUND_PURCHASE)
        case Event.RESUME, _:  # NOTIFYING: the mails that are still to go
            return Next(state, mails=Mails.SALE)
        case Event.COMPENSATE, State.CHARGING | State.ASKING:
            return Next(State.CALLING_OFF, Bottles.RELEASE, command=CALL_OFF_PURCHASE)
        case Event.COMPENSATE, State.LAPSED | State.CHARGE_UNCLEAR:
            return Next(State.CALLING_OFF, command=CALL_OFF_PURCHASE)
        case Event.COMPENSATE, State.NOTIFYING:
            raise RefusedError("The buyer and the merchant are being told, which cannot be undone. Refund it by hand.")
        case _:
            raise RefusedError("It is being undone already. Resume it if it does not move.")
