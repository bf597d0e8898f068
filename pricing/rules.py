"""What becomes of an observed price: the decision alone. Pure; whoever calls it holds the wine's row lock.

An offer stands from `occurred_at`, when its price came to be, to `seen_at`, when the merchant last confirmed it, or
said that it is withdrawn. Guarantee: in whatever order observations arrive, the price that stands in the end is that
of the latest one. What a merchant asks is compared in the merchant's own money first, so that no exchange rate makes
a price change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from pricing.contract import PRICE_CURRENCY, TAX_UNSAID


@dataclass(frozen=True, slots=True)
class Observation:
    """A merchant says: at this time this wine cost so much. Two decimals; an aware time.

    `native_price` and `native_currency` are what was said where that is not dollars; `price_usd` is then its
    conversion, or None as long as no rate is known. `tax` says whether the price has tax in it, if anybody said.
    `withdrawn`: at this time the merchant offered it no longer; there is no price then.
    """

    wine_id: str
    price_usd: Decimal | None
    occurred_at: datetime
    native_price: Decimal | None = None
    native_currency: str = ""
    tax: str = TAX_UNSAID
    withdrawn: bool = False

    @classmethod
    def of(
        cls, wine_id: str, price: Decimal, currency: str, occurred_at: datetime, *, tax: str = TAX_UNSAID
    ) -> Observation:
        """A price in any currency, not yet converted."""
        if currency == PRICE_CURRENCY:
            return cls(wine_id, price, occurred_at, tax=tax)
        return cls(wine_id, None, occurred_at, price, currency, tax=tax)

    @property
    def asked(self) -> tuple[str, Decimal | None]:
        """Currency and amount as the merchant says them."""
        return _asked(self.price_usd, self.native_price, self.native_currency)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the merchant asks for the wine as far as we know. `updated_at` is our clock, the others the merchant's.

    With a `withdrawn_at` it is offered no longer; the price is what it was.
    """

    price_usd: Decimal
    occurred_at: datetime
    seen_at: datetime
    event_id: str
    updated_at: datetime
    native_price: Decimal | None = None
    native_currency: str = ""
    withdrawn_at: datetime | None = None
    tax: str = TAX_UNSAID

    @property
    def asked(self) -> tuple[str, Decimal | None]:
        return _asked(self.price_usd, self.native_price, self.native_currency)


class Verdict(StrEnum):
    APPLIED = "applied"  # it is the price now, and announced
    RETURNED = "returned"  # it was withdrawn and is offered again, at the price it had: announced as that
    WITHDRAWN = "withdrawn"  # it is offered no longer, and that is announced
    UNCHANGED = "unchanged"  # it was the price already, or withdrawn already: no event, only seen again
    STALE = "stale"  # a later observation is known: kept as history, marked late
    HELD = "held"  # too far from the price now to believe unasked
    NO_RATE = "no rate"  # nobody can say yet what it is in dollars
    NOT_OFFERED = "not offered"  # withdrawn, and we know no offer of it


def judge(observation: Observation, standing: Standing | None, *, hold_factor: Decimal | None) -> Verdict:
    """Decide about one observation. Without a `hold_factor` any jump is believed.

    Of two different prices with one time the first to arrive stays: nothing says which is right, and a price that
    flips back and forth would alert each time.
    """
    if observation.withdrawn:
        return _judge_withdrawal(observation, standing)
    if standing is None:
        return Verdict.NO_RATE if observation.price_usd is None else Verdict.APPLIED
    if observation.occurred_at >= standing.occurred_at and _is_same(observation, standing):
        returns = standing.withdrawn_at is not None and observation.occurred_at > standing.seen_at
        return Verdict.RETURNED if returns else Verdict.UNCHANGED
    if hold_factor is not None and _jumps(observation, standing, factor=hold_factor):
        return Verdict.HELD
    if observation.price_usd is None:
        return Verdict.NO_RATE
    if observation.occurred_at <= standing.seen_at:
        return Verdict.STALE
    return Verdict.APPLIED


def _judge_withdrawal(observation: Observation, standing: Standing | None) -> Verdict:
    if standing is None:
        return Verdict.NOT_OFFERED
    if observation.occurred_at < standing.seen_at:
        return Verdict.STALE
    return Verdict.UNCHANGED if standing.withdrawn_at else Verdict.WITHDRAWN


def jumps(old: Decimal, new: Decimal, *, factor: Decimal) -> bool:
    """Whether a price is more than `factor` times the other: cents sent as dollars, a case's price for a bottle's."""
    return new > old * factor or new * factor < old


def applied(observation: Observation, *, event_id: str, now: datetime) -> Standing:
    """The standing after an observation was applied."""
    assert observation.price_usd is not None  # judge has seen to it
    return Standing(
        price_usd=observation.price_usd,
        occurred_at=observation.occurred_at,
        seen_at=observation.occurred_at,
        event_id=event_id,
        updated_at=now,
        native_price=observation.native_price,
        native_currency=observation.native_currency,
        tax=observation.tax,
    )


def returned(standing: Standing, observation: Observation, *, event_id: str, now: datetime) -> Standing:
    """The standing after what was withdrawn is offered again, since then, at the price it had, in dollars as before."""
    return replace(
        seen_again(standing, observation),
        occurred_at=observation.occurred_at,
        event_id=event_id,
        updated_at=now,
        withdrawn_at=None,
    )


def seen_again(standing: Standing, observation: Observation) -> Standing:
    """The standing after the same price was observed once more, be it said in another currency.

    Where nothing is said of tax now, what was said of it before still holds.
    """
    if observation.occurred_at < standing.seen_at:
        return standing
    return replace(
        standing,
        seen_at=observation.occurred_at,
        native_price=observation.native_price,
        native_currency=observation.native_currency,
        tax=observation.tax or standing.tax,
    )


def withdrawn(standing: Standing, *, at: datetime, now: datetime) -> Standing:
    """The standing after the merchant said that it does not offer the wine; the same if a later price is known.

    Said once more, it only confirms: `seen_at` moves, so that a price from between the two is late.
    """
    if at < standing.seen_at:
        return standing
    if standing.withdrawn_at is not None:
        return replace(standing, seen_at=at)
    return replace(standing, seen_at=at, updated_at=now, withdrawn_at=at)


def _asked(price_usd: Decimal | None, native_price: Decimal | None, native_currency: str) -> tuple[str, Decimal | None]:
    return (native_currency, native_price) if native_currency else (PRICE_CURRENCY, price_usd)


def _is_same(observation: Observation, standing: Standing) -> bool:
    """The same amount of the same money, or the same in dollars to the cent."""
    return observation.asked == standing.asked or observation.price_usd == standing.price_usd


def _jumps(observation: Observation, standing: Standing, *, factor: Decimal) -> bool:
    """In the merchant's own money where it is the same one, else in dollars, if that is known."""
    (new_currency, new), (old_currency, old) = observation.asked, standing.asked
    if new_currency != old_currency:
        new, old = observation.price_usd, standing.price_usd
    return new is not None and old is not None and jumps(old, new, factor=factor)
