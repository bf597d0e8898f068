"""Exchange rates as arithmetic: what an amount is in dollars, by two rates of one day. Pure; imports no Django."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal

from pricing.contract import LARGEST_PRICE

CENT = Decimal("0.01")
# Fourteen digits of an amount times ten of a rate, and some to spare: nothing is rounded before the cent.
_EXACTLY = Context(prec=50, rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Rate:
    """What one euro was worth on a day, in a currency and in dollars, as the ECB publishes it."""

    day: date
    per_eur: Decimal
    usd_per_eur: Decimal

    def to_usd(self, amount: Decimal) -> Decimal | None:
        """In dollars, rounded half up to the cent; None for what is less than a cent or more than a price can be."""
        dollars = _EXACTLY.divide(_EXACTLY.multiply(amount, self.usd_per_eur), self.per_eur)
        dollars = dollars.quantize(CENT, context=_EXACTLY)
        return dollars if CENT <= dollars <= LARGEST_PRICE else None

    def from_usd(self, dollars: Decimal) -> Decimal:
        """What so many dollars are in the currency, rounded half up to the cent."""
        amount = _EXACTLY.divide(_EXACTLY.multiply(dollars, self.per_eur), self.usd_per_eur)
        return amount.quantize(CENT, context=_EXACTLY)
