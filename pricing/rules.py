"""What becomes of an observed price: the decision alone. Pure; whoever calls it holds the wine's row lock.

An offer stands from `occurred_at`, when its price came to be, to `seen_at`, when the merchant last confirmed it.
Guarantee: in whatever order observations arrive, the price that stands in the end is that of the latest one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Observation:
    """A merchant says: at this time this wine cost so much. Dollars with two decimals; an aware time."""

    wine_id: str
    price_usd: Decimal
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """What the merchant asks for the wine as far as we know. `updated_at` is our clock, the others the merchant's."""

    price_usd: Decimal
    occurred_at: datetime
    seen_at: datetime
    event_id: str
    updated_at: datetime


class Verdict(StrEnum):
    APPLIED = "applied"  # it is the price now, and announced
    UNCHANGED = "unchanged"  # it was the price already: no event, only seen again
    STALE = "stale"  # a later observation is known: kept as history, marked late
    HELD = "held"  # too far from the price now to believe unasked


def judge(observation: Observation, standing: Standing | None, *, hold_factor: Decimal | None) -> Verdict:
    """Decide about one observation. Without a `hold_factor` any jump is believed.

    Of two different prices with one time the first to arrive stays: nothing says which is right, and a price that
    flips back and forth would alert each time.
    """
    if standing is None:
        return Verdict.APPLIED
    if observation.price_usd == standing.price_usd and observation.occurred_at >= standing.occurred_at:
        return Verdict.UNCHANGED
    if hold_factor is not None and jumps(standing.price_usd, observation.price_usd, factor=hold_factor):
        return Verdict.HELD
    if observation.occurred_at <= standing.seen_at:
        return Verdict.STALE
    return Verdict.APPLIED


def jumps(old: Decimal, new: Decimal, *, factor: Decimal) -> bool:
    """Whether a price is more than `factor` times the other: cents sent as dollars, a case's price for a bottle's."""
    return new > old * factor or new * factor < old


def applied(observation: Observation, *, event_id: str, now: datetime) -> Standing:
    """The standing after an observation was applied."""
    return Standing(
        price_usd=observation.price_usd,
        occurred_at=observation.occurred_at,
        seen_at=observation.occurred_at,
        event_id=event_id,
        updated_at=now,
    )


def seen_again(standing: Standing, observation: Observation) -> Standing:
    """The standing after the same price was observed once more."""
    return replace(standing, seen_at=max(standing.seen_at, observation.occurred_at))
