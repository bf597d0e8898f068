"""Exchange rates as cellars use them: units of a currency for one US dollar, on a day. The one place that knows them.

Guarantee: the US dollar is 1 on every day; a currency of which no rate is known is absent, never guessed.
"""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from django.db import connection

from winecellar.cellars.rules import USD

TEN_PLACES = Decimal("0.0000000001")
# The rates are published against the euro; of each currency the last day that has the dollar too counts, however old:
# a cellar whose currency is no longer published is valued at its last rate rather than not at all.
LATEST = """
SELECT DISTINCT ON (theirs.currency) theirs.currency, theirs.per_eur / dollar.per_eur
FROM pricing_exchangerate theirs JOIN pricing_exchangerate dollar ON dollar.day = theirs.day AND dollar.currency = 'USD'
WHERE theirs.day <= %s ORDER BY theirs.currency, theirs.day DESC
"""


def rates_on(day: date) -> dict[str, Decimal]:
    """All rates of the day: of each currency the latest published on it or before. 1 query."""
    with connection.cursor() as cursor:
        cursor.execute(LATEST, [day])
        rates = {currency: rate.quantize(TEN_PLACES, ROUND_HALF_UP) for currency, rate in cursor.fetchall()}
    return {**rates, USD: Decimal(1)}


def usd_rate(currency: str, day: date) -> Decimal | None:
    """Units of the currency for one US dollar; None where no rate is known."""
    return rates_on(day).get(currency)
