"""What follows when a listing goes, has no price any more, or speaks of something else: its wine's offer may end.

Guarantee: an offer is withdrawn only when no other listing of the merchant's has a price for the wine; where one has,
its price is what is asked now. Called by listings alone, which holds the locks of the listings and of their wines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pricing import availability, rates
from pricing.contract import CURRENCIES
from pricing.models import Listing, Merchant, Wine
from pricing.rules import Observation
from pricing.services import record_observations


@dataclass(frozen=True, slots=True)
class End:
    """A listing speaks of this wine no longer, or has no price any more."""

    wine_id: str
    since: datetime
    why: str


def ends(listing: Listing, *, was: str | None, why: str, since: datetime) -> list[End]:
    """What a changed listing speaks of no longer; `was` is the wine it was before, `why` it has no price, if so."""
    found = []
    if was is not None and listing.wine_id != was:
        found.append(End(was, since, "listed as something else"))
    if listing.wine_id and listing.price is None:
        found.append(End(listing.wine_id, since, str(why)))
    return found


def end_offers(
    merchant: Merchant, ends: Sequence[End], wines: Mapping[str, Wine], attributes: Mapping[str, str], now: datetime
) -> list[str]:
    """Withdraw the offers of which no other listing is left with a price; where one is, its price is asked now.

    Returns the wines whose offers ended by it. The wines are locked, and a listing is changed before its wine is
    locked, so the last one to go sees all others.
    """
    if not ends:
        return []
    left = _left(merchant, {end.wine_id for end in ends}, now)
    asked: list[Observation] = []
    gone: dict[tuple[datetime, str], set[str]] = defaultdict(set)
    for end in ends:
        other = left.get(end.wine_id)
        if other is None:
            gone[end.since, end.why].add(end.wine_id)
        elif not wines[end.wine_id].retired_at:
            asked.append(replace(other, occurred_at=max(end.since, other.occurred_at)))
    ended: list[str] = []
    for (since, why), wine_ids in sorted(gone.items()):
        ended += availability.withdraw(
            merchant=merchant, wine_ids=wine_ids, at=since, why=why, now=now, attributes=attributes
        )
    record_observations(merchant=merchant, observations=asked, attributes=attributes, now=now)
    return ended


def _left(merchant: Merchant, wine_ids: Collection[str], now: datetime) -> dict[str, Observation]:
    """The cheapest price that is still asked for each of the wines, where one is."""
    priced = Listing.objects.filter(merchant=merchant, wine__pk__any_of=wine_ids, price__isnull=False)
    rows = (
        priced.filter(currency__in=CURRENCIES)
        .order_by("source_id")
        .values_list("wine_id", "price", "currency", "occurred_at")
    )
    return rates.cheapest(
        Observation.of(wine_id, price, currency, occurred_at or now)
        for wine_id, price, currency, occurred_at in rows
        if wine_id and price is not None
    )
