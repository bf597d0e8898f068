"""What a listing says and asks, and what becomes of it when its merchant says something else. No queries.

Guarantee: what is older than what is known changes nothing, and whatever is changed beside a catalogue file undoes that
file's word, so that the next file does not take it for unchanged. Called by listings, which holds the rows' locks.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pricing import listing_rows, matching
from pricing.file_order import FileWord
from pricing.matching import Ask, By, Candidate, Listed
from pricing.models import Listing, Wine
from pricing.sizes import Packing
from pricing.titles import Vintage

SAID = ("title", "name", "vintage", "non_vintage", "pack", "size_ml", "gtin", "lwin", "said_wine_id", "unclear")
ASKED = ("wine_id", "price", "currency", "occurred_at")
State = dict[str, Any]  # a listing's fields by name, as they were


def as_listed(listing: Any) -> Listed:
    """A stored listing, or a row with its columns, as matching sees it."""
    packing = Packing(listing.pack, listing.size_ml) if listing.pack and listing.size_ml else None
    vintage = Vintage(listing.vintage) if listing.vintage or listing.non_vintage else None
    return Listed(
        title=listing.title,
        name=listing.name,
        vintage=vintage,
        packing=packing,
        gtin=listing.gtin,
        lwin=listing.lwin,
        wine_id=listing.said_wine_id,
        unclear=listing.unclear,
    )


def candidate(wine: Wine) -> Candidate:
    return Candidate(
        wine_id=wine.pk,
        name=wine.name,
        producer=wine.producer,
        region=wine.region,
        vintage=wine.vintage,
        size_ml=wine.size_ml,
        gtin=wine.gtin,
        lwin=wine.lwin,
    )


def state_of(listing: Listing) -> State:
    return {name: getattr(listing, name) for name in listing_rows.COLUMNS}


def describe(listing: Listing, ask: Ask, word: FileWord | None) -> None:
    """Make the listing say what the ask says, unless it is older. Without a word of its own it undoes a file's."""
    heard = _last_heard(listing)
    if heard is not None and ask.occurred_at < heard:
        return
    said = fields(ask.listed)
    if {name: getattr(listing, name) for name in SAID} != said:
        for name, value in said.items():
            setattr(listing, name, value)
        if listing.matched_by != By.PERSON or _speaks_against(listing):
            listing.wine, listing.matched_by, listing.set_aside_at = None, "", None
        listing.file_said = None
    price = ask.price if ask.in_stock else None
    if (listing.price, listing.currency) != (price, ask.currency):
        listing.file_asked = None
    if word is not None:
        listing.in_file, listing.file_said, listing.file_asked = True, word.said, word.asked
    listing.price, listing.currency, listing.occurred_at = price, ask.currency, ask.occurred_at


def _last_heard(listing: Listing) -> datetime | None:
    """When the merchant last said what the listing says: a file confirms what it does not change, without a write."""
    confirmed: datetime | None = getattr(listing, "confirmed_at", None)
    if confirmed is None or listing.occurred_at is None or listing.file_asked is None:
        return listing.occurred_at
    return max(listing.occurred_at, confirmed)


def withdraw(listing: Listing, when: datetime) -> bool:
    """Nothing is asked for it any more, unless that is older than what we know. Whether that is news."""
    heard = _last_heard(listing)
    if heard is not None and when < heard:
        return False
    is_news = listing.price is not None
    # Said again, it is later than what came in between.
    listing.price, listing.occurred_at, listing.file_asked = None, when, None
    return is_news


def _speaks_against(listing: Listing) -> bool:
    assert listing.wine is not None  # a person's match has one
    return bool(listing.unclear or matching.objection(as_listed(listing), candidate(listing.wine)))


def fields(listed: Listed) -> dict[str, object]:
    return {
        "title": listed.title,
        "name": listed.name,
        "vintage": listed.vintage.year if listed.vintage else None,
        "non_vintage": listed.vintage is not None and listed.vintage.year is None,
        "pack": listed.packing.pack if listed.packing else None,
        "size_ml": listed.packing.size_ml if listed.packing else None,
        "gtin": listed.gtin,
        "lwin": listed.lwin,
        "said_wine_id": listed.wine_id,
        "unclear": listed.unclear,
    }
