"""What a bottle is worth, by which source, and why a cellar's value changed. Pure.

Guarantee: a bottle without any value has None, never 0; the causes of a change add up to it, to the cent. The nightly
valuation states the same cascade in SQL, and the tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from enum import IntEnum

CENT = Decimal("0.01")
ZERO = Decimal(0)
USD = "USD"


class Source(IntEnum):
    """Where a value comes from, the first that has one counts. The numbers are stored."""

    OWN = 1  # the owner says so
    OFFER = 2  # the best that a merchant asks now
    LAST_OFFER = 3  # what a merchant last asked; nobody does now
    PAID = 4  # what the owner paid
    NONE = 9


@dataclass(frozen=True, slots=True)
class Money:
    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Offered:
    """What a wine is offered at, in US dollars, for a bottle of `size_ml`: now, or (`seen_on`) last known then."""

    usd: Decimal
    size_ml: int
    seen_on: date | None = None


@dataclass(frozen=True, slots=True)
class Worth:
    """What one bottle is worth. `amount` is None, and the source NONE, where nothing is known."""

    amount: Decimal | None
    source: Source
    seen_on: date | None = None


UNKNOWN = Worth(None, Source.NONE)


@dataclass(frozen=True, slots=True)
class Basis:
    """How a cellar reckons: in which currency, at which rates (units for one US dollar), and whether sizes scale."""

    currency: str
    rates: Mapping[str, Decimal]
    scales_by_size: bool = True

    def convert(self, money: Money) -> Decimal | None:
        """To the cellar's currency, to the cent, halves up. None where a rate is missing, or nothing is left of it."""
        if money.currency == self.currency:
            exact = money.amount
        elif money.currency in self.rates and self.currency in self.rates:
            exact = money.amount * self.rates[self.currency] / self.rates[money.currency]
        else:
            return None
        return exact.quantize(CENT, ROUND_HALF_UP) or None

    def scaled(self, offered: Offered, size_ml: int) -> Money | None:
        """What a bottle of that size would cost, by volume; None for another size where sizes do not scale."""
        if offered.size_ml == size_ml:
            return Money(offered.usd, USD)
        return Money(offered.usd * size_ml / offered.size_ml, USD) if self.scales_by_size else None


def worth(
    *, basis: Basis, size_ml: int, own: Money | None = None, offered: Offered | None = None, paid: Money | None = None
) -> Worth:
    """One bottle's worth: own value, else the best offer, else the last known one, else what was paid."""
    if own and (amount := basis.convert(own)):
        return Worth(amount, Source.OWN)
    if offered and (money := basis.scaled(offered, size_ml)) and (amount := basis.convert(money)):
        return Worth(amount, Source.LAST_OFFER if offered.seen_on else Source.OFFER, offered.seen_on)
    if paid and (amount := basis.convert(paid)):
        return Worth(amount, Source.PAID)
    return UNKNOWN


# --- Why a value changed ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """So many bottles of one row, and what one of them was worth on a night."""

    bottle_id: int
    quantity: int
    unit: Decimal | None
    source: Source
    seen_on: date | None = None

    @property
    def value(self) -> Decimal:
        return (self.unit or ZERO) * self.quantity


@dataclass(frozen=True, slots=True)
class Moved:
    """What one row of bottles did to the value, by cause. `revalued`: own values, prices paid, another source."""

    bottle_id: int
    came: Decimal = ZERO
    left: Decimal = ZERO
    price: Decimal = ZERO
    rate: Decimal = ZERO
    revalued: Decimal = ZERO

    @property
    def total(self) -> Decimal:
        return self.came + self.left + self.price + self.rate + self.revalued


@dataclass(frozen=True, slots=True)
class Change:
    """A cellar's change of value between two nights, row by row and by cause."""

    rows: tuple[Moved, ...]

    @property
    def total(self) -> Decimal:
        return sum((row.total for row in self.rows), ZERO)

    def of(self, cause: str) -> Decimal:
        return sum((getattr(row, cause) for row in self.rows), ZERO)

    def largest(self, cause: str, most: int) -> list[Moved]:
        """The rows that one cause moved most."""
        moved = [row for row in self.rows if getattr(row, cause)]
        return sorted(moved, key=lambda row: (-abs(getattr(row, cause)), row.bottle_id))[:most]


def explain(before: Iterable[Line], after: Iterable[Line], *, rate_before: Decimal, rate_after: Decimal) -> Change:
    """Why the value of a cellar changed between two nights, in one currency whose rates to the dollar are given."""
    old = {line.bottle_id: line for line in before}
    new = {line.bottle_id: line for line in after}
    rows = [_moved(old.get(id_), new.get(id_), rate_after / rate_before) for id_ in sorted(old.keys() | new.keys())]
    return Change(tuple(row for row in rows if row != Moved(row.bottle_id)))


def _moved(before: Line | None, after: Line | None, rate: Decimal) -> Moved:
    """Bottles that came or left count at the price of the night they were there; the rest concerns the others."""
    if before is None:
        assert after is not None, "a row of bottles is in one of the nights"
        return Moved(after.bottle_id, came=after.value)
    if after is None:
        return Moved(before.bottle_id, left=-before.value)
    stayed = min(before.quantity, after.quantity)
    came = (after.unit or ZERO) * (after.quantity - stayed)
    left = -(before.unit or ZERO) * (before.quantity - stayed)
    difference = ((after.unit or ZERO) - (before.unit or ZERO)) * stayed
    if before.source != after.source or after.source not in {Source.OFFER, Source.LAST_OFFER} or before.unit is None:
        return Moved(before.bottle_id, came=came, left=left, revalued=difference)
    # What the dollar did to a price that did not move; the remainder is the price's own doing.
    by_rate = ((before.unit * rate).quantize(CENT, ROUND_HALF_UP) - before.unit) * stayed
    return Moved(before.bottle_id, came=came, left=left, rate=by_rate, price=difference - by_rate)
