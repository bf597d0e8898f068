"""What becomes of a delivery on a channel after a try, and when a channel is switched off. Pure; imports no Django.

A person's broken receiver is no failure of ours: nothing here ends as a dead letter, and nobody is called at night.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Came(StrEnum):
    """How a try ended."""

    TAKEN = "taken"
    GONE = "gone"  # the receiver says that there will never be anybody (410)
    FAILED = "failed"  # anything else: no answer, a refusal, an address that we do not post to
    POSTPONED = "postponed"  # not tried: the channel failed a moment ago
    UNREADABLE = "unreadable"  # no SECRET_KEY of ours opens the address or the secret


@dataclass(frozen=True, slots=True)
class Outcome:
    """`said`: for the owner, without addresses or secrets. `retry_after`: seconds that the receiver asked for."""

    came: Came
    said: str = ""
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Settled:
    """The delivery is over. `off`: why the channel is switched off with it, if it is."""

    taken: bool
    off: str = ""


@dataclass(frozen=True, slots=True)
class Again:
    """Try again after `delay` seconds; `counts`: this one was a try."""

    delay: float
    counts: bool = True


GONE = "The receiver answered 410: it wants nothing more."
UNREADABLE = "We can no longer read its address. Remove it and add it again."
FAILING = "It did not take {count} notifications in a row. The last time: {said}"


@dataclass(frozen=True, slots=True)
class Limits:
    """`delays`: how long to wait after the first, second … failed try; after the last of them it is given up."""

    delays: Sequence[timedelta]
    longest_wait: timedelta
    give_ups: int


def after_try(
    outcome: Outcome,
    *,
    tries: int,
    given_up: int,
    wait: float,
    limits: Limits,
    uniform: Callable[[float, float], float],
) -> Settled | Again:
    """`tries`: those before this one. `given_up`: notifications in a row that the channel has not taken, until now.

    `wait`: how long the channel still rests, for one that was postponed.
    """
    match outcome.came:
        case Came.TAKEN:
            return Settled(taken=True)
        case Came.GONE:
            return Settled(taken=False, off=GONE)
        case Came.UNREADABLE:
            return Settled(taken=False, off=UNREADABLE)
        case Came.POSTPONED:
            # Spread, so that all that waited does not arrive with the first try after the rest.
            return Again(wait + uniform(1.0, 10.0), counts=False)
    if tries >= len(limits.delays):
        failing = given_up + 1 >= limits.give_ups
        return Settled(taken=False, off=FAILING.format(count=given_up + 1, said=outcome.said) if failing else "")
    base = limits.delays[tries].total_seconds()
    asked = min(outcome.retry_after, limits.longest_wait.total_seconds())
    return Again(max(asked, uniform(base, 1.5 * base)))
