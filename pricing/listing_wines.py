"""Which wines listings may be: found by index, then left to matching, which decides.

Guarantee: a listing that waits gets a wine only where matching is certain; nothing is written here. Called by listings,
and for suggestions by the admin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import Q

from pricing import matching
from pricing.listing_state import as_listed, candidate
from pricing.lookups import Shared
from pricing.matching import Candidate, Listed
from pricing.models import Listing, Merchant, Wine

MOST_RANKED = 50  # wines that share the most words with a listing, from which the likeliest are chosen


def suggestions(listing: Listing, *, most: int = 5) -> list[Candidate]:
    """The wines that a listing may be, likeliest first, for the person who matches it: 1 query."""
    listed = as_listed(listing)
    words = sorted(set(listed.name.split()))
    wines = Wine.objects.filter(retired_at__isnull=True, words__overlap=words).annotate(shared=Shared("words", words))
    if listed.vintage:
        wines = wines.filter(vintage=listed.vintage.year)
    if listed.packing:
        wines = wines.filter(size_ml=listed.packing.size_ml)
    nearest = wines.defer("names", "words").order_by("-shared", "pk")[:MOST_RANKED]
    return matching.rank(listed, map(candidate, nearest), most=most)


def match_waiting(merchant: Merchant, listings: Iterable[Listing]) -> None:
    """Find the wines of those that wait."""
    waiting = [
        (listing, as_listed(listing)) for listing in listings if listing.wine_id is None and not listing.set_aside_at
    ]
    if not waiting:
        return
    wines = wines_for([listed for _, listed in waiting])
    candidates = matching.Candidates(map(candidate, wines.values()))
    for listing, listed in waiting:
        found = matching.match(listed, candidates, unsaid_size_ml=merchant.unsaid_size_ml)
        if found:
            listing.wine, listing.matched_by = wines[found.wine_id], found.by.value


def wines_for(listed: Sequence[Listed]) -> dict[str, Wine]:
    """All wines that one of the listings' marks could name."""
    marks = [
        Q(pk__in={each.wine_id for each in listed if each.wine_id}),
        Q(gtin__in={each.gtin for each in listed if each.gtin}),
        Q(lwin__in={each.lwin for each in listed if each.lwin}),
        Q(names__overlap=sorted({each.name for each in listed if each.name and each.vintage})),
    ]
    # One index for each mark, and one look at each: an OR of all four would be a scan of all wines.
    wines = Wine.objects.filter(retired_at__isnull=True).defer("names", "words")
    return {wine.pk: wine for mark in marks for wine in wines.filter(mark)}
