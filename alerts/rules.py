"""When an alert speaks: the state machine as pure functions. matching.py applies what is decided here.

armed → fired when a price that is still current is what the alert waits for; fired → armed when nothing that it listens
to is so any more, be it dearer or gone. A fired alert speaks again when the price has fallen a further step; within the
cooldown an armed one does not either, unless it has. Never: a price no longer current, one that only the exchange rate
brought, what comes back at the very price that was mailed. Every verdict carries its reason in the reader's words.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from alerts.money import said


class Kind(StrEnum):
    """The values of Alert.Kind. A percentage has come to a target when the alert was set."""

    THRESHOLD = "threshold"
    PERCENT = "percent"
    LOW = "low"
    BACK = "back"


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


@dataclass(frozen=True, slots=True)
class Terms:
    """What is promised: how far a price falls to be news again, and how long the same news is none."""

    further: Decimal
    cooldown: timedelta


@dataclass(slots=True)
class Watch:
    """An alert as the rules see it; amounts in its currency. `told_at` and `told_when` are of its last mail."""

    kind: Kind
    state: State
    currency: str
    target: Decimal | None = None
    low_days: int | None = None
    told_at: Decimal | None = None
    told_when: datetime | None = None
    snoozed_until: datetime | None = None
    snoozed_until_rise: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """What one event shows one alert; amounts in the alert's currency.

    price       what is asked now; None where no rate is known
    previous    what this merchant asked before, if it did
    no_cheaper  whether the merchant asks, in its own other money, no less than before
    current     whether this is still so as we look
    best_after  the lowest relevant offer once this event had happened
    is_low      whether the price is below all of the alert's window
    returned    whether it was away, and is back at the price it had
    told_of_it  whether the last mail was about just this offer, which has been away since
    """

    price: Decimal | None
    current: bool
    best_after: Decimal | None
    previous: Decimal | None = None
    no_cheaper: bool = False
    is_low: bool = False
    returned: bool = False
    told_of_it: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the alert, and the row in its log."""

    state: State
    outcome: Outcome
    reason: str


SUPERSEDED = "superseded: a newer price had arrived before we looked"


def judge_offer(watch: Watch, sight: Sight, *, now: datetime, terms: Terms) -> Verdict | None:
    """A price or a return against one alert; None when there is nothing to say or to change."""
    if watch.state is State.PENDING or sight.price is None:
        return None  # its own first check, which is queued behind this event, looks at the price as it is by then
    if watch.state is State.FIRED:
        return _judge_again(watch, sight, sight.price, now=now, terms=terms)
    if not _is_met(watch, sight.price, sight):
        return None
    if not sight.current:
        return Verdict(State.ARMED, Outcome.NOT_MAILED, SUPERSEDED)
    level = sight.price if watch.target is None else watch.target
    if watch.kind is not Kind.BACK and _by_rate_alone(sight, level):
        return Verdict(State.ARMED, Outcome.NOT_MAILED, "only the exchange rate made it cheaper, not the merchant")
    if hushed := _hushed(watch, now):
        return Verdict(State.ARMED, Outcome.NOT_MAILED, hushed)
    if sight.told_of_it and watch.kind is not Kind.BACK:
        price = said(sight.price, watch.currency)
        return Verdict(State.FIRED, Outcome.NOT_MAILED, f"offered again at {price}, of which you were told")
    if lately := _told_lately(watch, sight.price, now, terms):
        return Verdict(State.FIRED, Outcome.NOT_MAILED, lately)
    return Verdict(State.FIRED, Outcome.MAILED, _news(watch, sight.price, returned=sight.returned))


def judge_withdrawal(watch: Watch, *, best_after: Decimal | None) -> Verdict | None:
    """A merchant offers the wine no longer; `best_after` is the lowest relevant offer that is left."""
    if watch.state is State.FIRED and _has_risen(watch, best_after):
        where = "" if watch.target is None else " at your target"
        return Verdict(State.ARMED, Outcome.ARMED, f"no longer offered{where}: watching again")
    return None


def judge_first_check(watch: Watch, sight: Sight | None, *, now: datetime, terms: Terms) -> Verdict | None:
    """A new, changed or woken alert against the best relevant offer, or none; None if it was checked already."""
    if watch.state is not State.PENDING:
        return None
    if sight is None:
        return Verdict(State.ARMED, Outcome.ARMED, "first check: nobody offers it now")
    if sight.price is None:
        return Verdict(State.ARMED, Outcome.ARMED, f"first check: no exchange rate of {watch.currency} is known")
    if watch.kind is Kind.BACK:
        return Verdict(State.FIRED, Outcome.ARMED, "first check: offered now; you hear when it has gone and is back")
    if not _is_met(watch, sight.price, sight):
        above = "no new low" if watch.kind is Kind.LOW else "above your target"
        return Verdict(State.ARMED, Outcome.ARMED, f"first check: {above}")
    if not sight.current:
        return Verdict(State.ARMED, Outcome.NOT_MAILED, SUPERSEDED)
    if hushed := _hushed(watch, now):
        return Verdict(State.ARMED, Outcome.NOT_MAILED, hushed)
    if lately := _told_lately(watch, sight.price, now, terms):
        return Verdict(State.FIRED, Outcome.NOT_MAILED, lately)
    already = _window(watch) if watch.kind is Kind.LOW else "at or below your target"
    return Verdict(State.FIRED, Outcome.MAILED, f"first check: already {already}")


def _judge_again(watch: Watch, sight: Sight, price: Decimal, *, now: datetime, terms: Terms) -> Verdict | None:
    """What a fired alert makes of a price: it arms, hears of a further fall, or stays as it is."""
    if _has_risen(watch, sight.best_after):
        above = "what you were told" if watch.target is None else "your target"
        return Verdict(State.ARMED, Outcome.ARMED, f"the price rose above {above}: watching again")
    told_at = watch.told_at
    if watch.kind is Kind.BACK or told_at is None or price > (told_at if watch.target is None else watch.target):
        return None
    told = said(told_at, watch.currency)
    level = _further_level(told_at, terms)
    if price > level:
        if price < told_at:
            part = f"{(told_at - price) / told_at * 100:.1f}".removesuffix(".0")
            return Verdict(State.FIRED, Outcome.NOT_MAILED, f"only {part} % lower than {told}, of which you were told")
        return Verdict(
            State.FIRED,
            Outcome.NOT_MAILED,
            f"you were told at {told}; the next mail is after it has risen again or fallen a further {_step(terms)}",
        )
    if not sight.current:
        return Verdict(State.FIRED, Outcome.NOT_MAILED, SUPERSEDED)
    if _by_rate_alone(sight, level):
        return Verdict(State.FIRED, Outcome.NOT_MAILED, "only the exchange rate made it cheaper, not the merchant")
    if hushed := _hushed(watch, now):
        return Verdict(State.FIRED, Outcome.NOT_MAILED, hushed)
    return Verdict(State.FIRED, Outcome.MAILED, f"fell a further {_step(terms)} or more, from {told}")


def _is_met(watch: Watch, price: Decimal, sight: Sight) -> bool:
    if watch.kind is Kind.BACK:
        return True
    return sight.is_low if watch.target is None else price <= watch.target


def _has_risen(watch: Watch, best_after: Decimal | None) -> bool:
    if best_after is None:
        return True
    level = watch.told_at if watch.target is None else watch.target
    return watch.kind is not Kind.BACK and level is not None and best_after > level


def _by_rate_alone(sight: Sight, level: Decimal) -> bool:
    """It was above the level, it is not now, and the merchant asks no less in its own money."""
    return sight.no_cheaper and sight.previous is not None and sight.previous > level


def _hushed(watch: Watch, now: datetime) -> str:
    if watch.snoozed_until_rise:
        return "snoozed until it rises"
    if watch.snoozed_until is not None and watch.snoozed_until > now:
        until = watch.snoozed_until
        return f"snoozed until {until.day} {until:%b %H:%M} UTC"
    return ""


def _told_lately(watch: Watch, price: Decimal, now: datetime, terms: Terms) -> str:
    """Why this is the last mail's news over again; empty if it is not."""
    if watch.told_at is None or watch.told_when is None or now >= watch.told_when + terms.cooldown:
        return ""
    if watch.kind is not Kind.BACK and price <= _further_level(watch.told_at, terms):
        return ""
    return f"told already at {watch.told_when:%H:%M} UTC, at {said(watch.told_at, watch.currency)}: it goes up and down"


def _further_level(told_at: Decimal, terms: Terms) -> Decimal:
    return told_at * (1 - terms.further)


def _step(terms: Terms) -> str:
    return f"{terms.further * 100:.1f}".removesuffix(".0") + " %"


def _news(watch: Watch, price: Decimal, *, returned: bool) -> str:
    if watch.kind is Kind.BACK:
        return "back in stock"
    again = "offered again, " if returned else ""
    if watch.target is None:
        return again + _window(watch)
    return again + ("at your target" if price == watch.target else "below your target")


def _window(watch: Watch) -> str:
    return "the lowest ever seen" if watch.low_days is None else f"the lowest in {watch.low_days} days"
