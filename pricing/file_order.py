"""What the rows of a catalogue file say of one wine: they have one time, and yet come one after the other.

Guarantee: of several rows of one wine the cheapest is what the merchant asks for it, whatever their order in the file;
a row's price stands although an earlier row of the file has ended the wine's offer, or asked something else for it.
Called by listings alone, which holds the locks of the listings and of their wines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from pricing import rates
from pricing.models import Listing, Merchant, Offer
from pricing.rules import Observation


class FileWord(NamedTuple):
    """Digests of what a catalogue file says a listing is, and of what it asks for it, for the next file to compare.

    `n` is the number of its row: where several rows are one wine, it is their order within the one time of the file.
    """

    said: int
    asked: int
    n: int


class _Lowest(NamedTuple):
    seen: Observation
    listings: int  # that are this wine


def moment(at: datetime, n: int) -> datetime:
    """The time of row n in a file of this time, where it must be told from the times of other rows."""
    return at + timedelta(microseconds=n)


def in_order(merchant: Merchant, observed: Sequence[Observation], numbers: Sequence[int | None]) -> list[Observation]:
    """The observations as they are to be recorded; `numbers` are those of the rows that they are from.

    None is one that is left as it is: it is from no file, or is older than what its listing says, and so is about a
    time of which the other listings say nothing.
    """
    times = [seen.occurred_at for seen, n in zip(observed, numbers, strict=True) if n is not None]
    if not times:
        return list(observed)
    wine_ids = {seen.wine_id for seen in observed}
    lowest = _lowest(merchant, wine_ids)
    later = Offer.objects.filter(merchant=merchant, wine__pk__any_of=wine_ids, seen_at__gt=min(times))
    said = dict(later.values_list("wine_id", "seen_at"))
    return [
        seen if n is None else _placed(seen, n, lowest.get(seen.wine_id), said.get(seen.wine_id))
        for seen, n in zip(observed, numbers, strict=True)
    ]


def _placed(seen: Observation, n: int, lowest: _Lowest | None, said: datetime | None) -> Observation:
    """`said` is when something was said of the wine, after the time of the file."""
    at = moment(seen.occurred_at, n)
    if lowest is not None and lowest.listings > 1:
        return replace(lowest.seen, occurred_at=at, tax=seen.tax)
    return replace(seen, occurred_at=at) if said is not None and said < at else seen


def _lowest(merchant: Merchant, wine_ids: Collection[str]) -> dict[str, _Lowest]:
    """The lowest price that the merchant's files ask for each of these wines, where they ask any."""
    rows = Listing.objects.filter(
        merchant=merchant, wine__pk__any_of=wine_ids, in_file=True, file_asked__isnull=False, price__isnull=False
    )
    asked = [
        Observation.of(wine_id, price, currency, occurred_at)
        for wine_id, price, currency, occurred_at in rows.order_by("source_id").values_list(
            "wine_id", "price", "currency", "occurred_at"
        )
        if wine_id and price is not None and occurred_at is not None
    ]
    counted = Counter(seen.wine_id for seen in asked)
    return {wine_id: _Lowest(seen, counted[wine_id]) for wine_id, seen in rates.cheapest(asked).items()}
