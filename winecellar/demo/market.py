"""A price walk that looks like a wine market. Pure and seeded: the same seed and listings give the same prices.

Each wine has a value that wanders and returns to its anchor. Merchants follow it, each some steps behind, round as
shops do, and now and then run a promotion of 10 to 20 % that ends again. A nightly refresh prices all a merchant sells.
Guarantee: prices are above zero, have two decimals, and never jump by a factor of three. Called by history.py and
feeding.py.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

STEP = 0.016  # standard deviation of one step of a wine's value
RETURN = 0.10  # the part of the way back to its anchor that the value goes at each step
FURTHEST = 0.30  # the value stays within e to the power of plus or minus this
LAST_FOLLOWER = 3  # steps that the slowest merchant is behind
PROMOTION_CHANCE = 0.10  # per repricing
PROMOTION_CUT = (0.10, 0.20)
PROMOTION_LASTS = (1, 2)  # repricings
DAILY_REPRICING = 0.14  # the chance that a shop changes a tag on an ordinary day


@dataclass(frozen=True, slots=True)
class Listing:
    """Where an offer starts: `usual` is the merchant's price in a calm market, `now` what the tag says, if not that."""

    wine_id: str
    merchant_id: str
    usual: Decimal
    now: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """What a merchant says it asks. `old` equals `new` where a refresh confirms a price."""

    wine_id: str
    merchant_id: str
    old: Decimal
    new: Decimal
    promotion: bool


@dataclass(slots=True)
class _Tag:
    """One merchant's price tag on one wine."""

    listing: Listing
    price: Decimal
    lag: int
    cut: float = 0.0  # of the running promotion
    left: int = 0  # repricings until it ends


class _Wine:
    """A wine's value, as the logarithm of its distance from the anchor, now and some steps back."""

    def __init__(self, value: float) -> None:
        self.trail = deque([value] * (LAST_FOLLOWER + 1), LAST_FOLLOWER + 1)


class Market:
    """The whole market. `endings` are the cents that each merchant's prices end in."""

    def __init__(self, *, seed: int, listings: Sequence[Listing], endings: Mapping[str, tuple[int, ...]]) -> None:
        self._random = random.Random(seed)
        self._endings = endings
        self._wines = {wine_id: _Wine(value) for wine_id, value in _values_now(listings).items()}
        self._tags = [self._first_tag(listing) for listing in listings]

    def prices(self) -> dict[tuple[str, str], Decimal]:
        """What the tags say now, by (wine id, merchant id)."""
        return {(tag.listing.wine_id, tag.listing.merchant_id): tag.price for tag in self._tags}

    def next_move(self) -> Quote:
        """The market moves on until one tag somewhere changes; wines must cost dollars, for cents are rounded away."""
        while True:
            tag = self._random.choice(self._tags)
            self._step(tag.listing.wine_id)
            quote = self._reprice(tag)
            if quote.new != quote.old:
                return quote

    def day(self) -> list[Quote]:
        """One day: every value takes a step, some shops change some tags; returns the changes."""
        for wine_id in self._wines:
            self._step(wine_id)
        quotes = [self._reprice(tag) for tag in self._tags if self._random.random() < DAILY_REPRICING]
        return [quote for quote in quotes if quote.new != quote.old]

    def refresh(self, merchant_id: str) -> list[Quote]:
        """A merchant's nightly catalogue: all it sells, priced anew; many prices stay as they were."""
        return [self._reprice(tag) for tag in self._tags if tag.listing.merchant_id == merchant_id]

    def promote(self, wine_id: str, merchant_id: str) -> Quote:
        """This merchant starts a promotion on this wine now, or begins the one that runs anew."""
        (tag,) = [t for t in self._tags if (t.listing.wine_id, t.listing.merchant_id) == (wine_id, merchant_id)]
        self._start_promotion(tag)
        return self._ask(tag)

    def _first_tag(self, listing: Listing) -> _Tag:
        price = listing.now or shop_price(float(listing.usual), self._endings[listing.merchant_id])
        return _Tag(listing, price, lag=self._random.randint(0, LAST_FOLLOWER))

    def _step(self, wine_id: str) -> None:
        trail = self._wines[wine_id].trail
        value = trail[-1] * (1 - RETURN) + self._random.gauss(0, STEP)
        trail.append(_bounded(value))

    def _reprice(self, tag: _Tag) -> Quote:
        if tag.left:
            tag.left -= 1
        elif self._random.random() < PROMOTION_CHANCE:
            self._start_promotion(tag)
        return self._ask(tag)

    def _start_promotion(self, tag: _Tag) -> None:
        tag.cut = self._random.uniform(*PROMOTION_CUT)
        tag.left = self._random.randint(*PROMOTION_LASTS)

    def _ask(self, tag: _Tag) -> Quote:
        value = self._wines[tag.listing.wine_id].trail[-1 - tag.lag]
        asked = float(tag.listing.usual) * math.exp(value) * (1 - tag.cut if tag.left else 1)
        old, tag.price = tag.price, shop_price(asked, self._endings[tag.listing.merchant_id])
        return Quote(tag.listing.wine_id, tag.listing.merchant_id, old, tag.price, promotion=tag.left > 0)


def _values_now(listings: Sequence[Listing]) -> dict[str, float]:
    """Where each wine's value stands: the average over its merchants of how far the tag is from the usual."""
    away: dict[str, list[float]] = {}
    for listing in listings:
        ratio = float((listing.now or listing.usual) / listing.usual)
        away.setdefault(listing.wine_id, []).append(math.log(ratio))
    return {wine_id: _bounded(sum(values) / len(values)) for wine_id, values in away.items()}


def _bounded(value: float) -> float:
    return max(-FURTHEST, min(FURTHEST, value))


def shop_price(asked: float, endings: Sequence[int]) -> Decimal:
    """The price above zero nearest to `asked` with one of these endings: 188.7 is 189.00, or 188.95, or 188.99."""
    dollars = math.floor(asked)
    cents = [100 * whole + ending for whole in (dollars - 1, dollars, dollars + 1) for ending in endings]
    nearest = min((amount for amount in cents if amount > 0), key=lambda amount: (abs(amount - 100 * asked), amount))
    return Decimal(nearest).scaleb(-2)
