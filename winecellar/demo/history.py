"""Ninety days of plausible prices per offer, for the charts. Pure and seeded, as the market it walks.

Guarantee: the last price of each offer is the one the offer has now. Called by load.py.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from winecellar.demo.market import Listing, Market

DAYS = 90


@dataclass(frozen=True, slots=True)
class PastPrice:
    """What a merchant asked for a wine from `observed_at` on."""

    wine_id: str
    merchant_id: str
    price_usd: Decimal
    observed_at: datetime


def past_prices(
    *, seed: int, listings: Sequence[Listing], endings: Mapping[str, tuple[int, ...]], now: datetime
) -> list[PastPrice]:
    """Each offer's first price `DAYS` days ago and every change since, in order of time; nothing in the last hour."""
    clock = random.Random(seed)
    market = Market(seed=seed, listings=listings, endings=endings)
    first_day = now - timedelta(days=DAYS)
    prices = [
        PastPrice(wine_id, merchant_id, price, first_day + _into_the_day(clock))
        for (wine_id, merchant_id), price in market.prices().items()
    ]
    for day in range(1, DAYS):
        prices += [
            PastPrice(
                quote.wine_id, quote.merchant_id, quote.new, first_day + timedelta(days=day) + _into_the_day(clock)
            )
            for quote in market.day()
        ]
    return sorted(prices, key=lambda price: price.observed_at)


def _into_the_day(clock: random.Random) -> timedelta:
    return timedelta(seconds=clock.randrange(23 * 3600))
