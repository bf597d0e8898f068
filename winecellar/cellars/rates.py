"""Exchange rates as cellars use them: units of a currency for one US dollar, on a day. The one place that knows them.

Guarantee: the US dollar is 1 on every day; a currency without a known rate is absent, never guessed.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from winecellar.cellars.rules import USD


def rates_on(day: date) -> dict[str, Decimal]:
    """All rates of the day: of each currency the latest published on it or before."""
    return {USD: Decimal(1)}


def usd_rate(currency: str, day: date) -> Decimal | None:
    """Units of the currency for one US dollar; None where no rate is known."""
    return rates_on(day).get(currency)
