"""What a price is in an alert's currency. An exchange rate alone must never move an alert: see docs/decisions/0020.

Guarantee: a price is worth the same in every currency from the day it came to be until it changes. Where a merchant
asks in the alert's own currency, that is what is compared; else its dollars, at that day's rate. Used by matching and
by whoever creates an alert.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal

from pricing import rates
from pricing.contract import PRICE_CURRENCY
from pricing.exchange import Rate


class Amounts:
    """Converts by the rates of these currencies and days: 1 query, or none where all is dollars."""

    def __init__(self, currencies: Iterable[str], days: Iterable[date]) -> None:
        wanted = {(currency, day) for currency in currencies if currency != PRICE_CURRENCY for day in set(days)}
        self._rates: dict[tuple[str, date], Rate] = rates.find(wanted, any_age=True) if wanted else {}

    def of(
        self, currency: str, price_usd: Decimal, day: date, native_price: Decimal | None, native_currency: str
    ) -> Decimal | None:
        """The price in the currency; None where no rate is known."""
        if currency == PRICE_CURRENCY:
            return price_usd
        if currency == native_currency:
            return native_price
        rate = self._rates.get((currency, day))
        return None if rate is None else rate.from_usd(price_usd)
