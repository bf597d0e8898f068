"""Listings: what shops ask for what they list, matched to wines, or kept until a person has matched it.

Guarantee: a listing's price is recorded only for the wine it is matched to, and only while nothing that the listing
says speaks against that wine; the price of one that waits is kept, and recorded when it is matched. A person's match
lasts until the listing says something else. Called by the feeds of shops and by the admin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, Q

from pricing import listing_rows, matching
from pricing.contract import PRICE_CURRENCY
from pricing.matching import Ask, By, Candidate, Listed
from pricing.models import Listing, Merchant, Wine
from pricing.rules import Observation
from pricing.services import Outcome, record_observations
from pricing.sizes import Packing
from pricing.titles import Vintage


class Kept(StrEnum):
    """Why a listing's price was kept and not recorded."""

    UNMATCHED = "unmatched"  # it waits for a person
    SET_ASIDE = "set aside"  # a person said that it is no wine of ours
    NO_PRICE = "no price"
    OTHER_CURRENCY = "other currency"
    GONE = "gone"  # the merchant no longer sells it
    RETIRED = "retired"  # the wine is no longer listed here


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one listing: recorded, with its outcome, or kept."""

    source_id: str
    outcome: Outcome | None
    kept: Kept | None


class FileWord(NamedTuple):
    """Digests of what a catalogue file says a listing is, and of what it asks for it, for the next file to compare.

    `n` is the number of its row: where several rows are one wine, it is their order within the one time of the file.
    """

    said: int
    asked: int
    n: int


class MismatchError(Exception):
    """The listing cannot be that wine; the message says why, for a person."""


def record(
    *,
    merchant: Merchant,
    asks: Sequence[Ask],
    attributes: Mapping[str, str],
    now: datetime,
    gone: str | None = None,
    gone_at: datetime | None = None,
    words: Mapping[str, FileWord] | None = None,
    doubted: Collection[str] = (),
) -> list[Result]:
    """Take what a merchant asks for its listings, each of which comes once; the results are in the same order.

    `gone` is a source id, or the beginning of several with a slash at its end: what it means and nothing is asked for
    has no price since `gone_at`. Those follow in the results.

    A catalogue file gives its `words`, by source id; of the `doubted` it has said something that nobody understands.
    Of several listings in a file that are one wine, the cheapest is what the merchant asks for it.
    """
    with transaction.atomic():
        listings = _locked(merchant, asks, gone, doubted)
        before = {source_id: _state(listing) for source_id, listing in listings.items()}
        for ask in asks:
            _describe(listings[ask.source_id], ask, words[ask.source_id] if words else None)
        for source_id in listings.keys() & set(doubted):
            listings[source_id].file_asked = None
        left = sorted(listings.keys() - {ask.source_id for ask in asks} - set(doubted))
        withdrawn = [source_id for source_id in left if _withdraw(listings[source_id], gone_at or now)]
        _match(merchant, listings.values())
        listing_rows.write([listing for id_, listing in listings.items() if _state(listing) != before[id_]])
        _lock_wines(listings.values())
        kept = [_why_kept(listings[ask.source_id], ask) for ask in asks]
        observed = [ask for ask, why in zip(asks, kept, strict=True) if why is None]
        lowest = _lowest(merchant, {listings[ask.source_id].wine_id for ask in observed}) if words else {}
        of_several = {id_: one for id_, one in lowest.items() if one.listings > 1}
        outcomes = record_observations(
            merchant=merchant,
            observations=[
                _observation(listings[ask.source_id], ask, of_several, words[ask.source_id] if words else None)
                for ask in observed
            ],
            attributes=attributes,
            own_attributes=[{"listing": ask.source_id} for ask in observed],
            now=now,
        )
    recorded = {ask.source_id: outcome for ask, outcome in zip(observed, outcomes, strict=True)}
    results = [Result(ask.source_id, recorded.get(ask.source_id), why) for ask, why in zip(asks, kept, strict=True)]
    return results + [Result(source_id, None, Kept.GONE) for source_id in withdrawn]


def leave_file(
    *,
    merchant: Merchant,
    source_ids: Sequence[str],
    unavailable: bool,
    at: datetime,
    attributes: Mapping[str, str],
    now: datetime,
) -> list[str]:
    """Listings that a file no longer has, as of `at`; if that makes them `unavailable`, nothing is asked for them.

    Returns the wines that this leaves without a listing in the merchant's file: their offers are to be withdrawn. What
    another listing is as well is asked for at that one's price.
    """
    with transaction.atomic():
        rows = Listing.objects.select_for_update(of=("self",)).order_by("source_id")
        left = list(rows.filter(merchant=merchant, source_id__any_of=source_ids))
        for listing in left:
            listing.in_file, listing.file_said, listing.file_asked = False, None, None
            if unavailable:
                _withdraw(listing, at)
        listing_rows.write(left)
        if not unavailable:
            return []
        _lock_wines(left)
        wines = {listing.wine_id for listing in left if listing.wine_id and listing.price is None}
        lowest = _lowest(merchant, wines)
        retired = {listing.wine_id for listing in left if listing.wine and listing.wine.retired_at}
        record_observations(
            merchant=merchant,
            observations=[Observation(id_, one.price, at) for id_, one in lowest.items() if id_ not in retired],
            attributes=attributes,
            now=now,
        )
    return sorted(wines - lowest.keys())


def match(*, listing_id: int, wine_id: str, by: str, now: datetime) -> Result:
    """A person says which wine a listing is, once and for all; its kept price is recorded. Raises MismatchError."""
    with transaction.atomic():
        listing = Listing.objects.select_for_update(of=("self",)).select_related("merchant").get(pk=listing_id)
        wine = Wine.objects.select_for_update(no_key=True).filter(pk=wine_id, retired_at__isnull=True).first()
        if wine is None:
            raise MismatchError("We do not list that wine, or no longer.")
        if against := matching.objection(as_listed(listing), candidate(wine)):
            raise MismatchError(against)
        listing.wine, listing.matched_by, listing.set_aside_at = wine, By.PERSON.value, None
        listing.save(update_fields=["wine", "matched_by", "set_aside_at"])
        if listing.occurred_at is None:
            return Result(listing.source_id, None, Kept.NO_PRICE)
        ask = Ask(listing.source_id, as_listed(listing), listing.price, listing.currency, listing.occurred_at)
        if why := _why_kept(listing, ask):
            return Result(listing.source_id, None, why)
        [outcome] = record_observations(
            merchant=listing.merchant,
            observations=[_observation(listing, ask, {}, None)],
            attributes={"matched_by": by, "listing": listing.source_id},
            now=now,
        )
        return Result(listing.source_id, outcome, None)


def set_aside(*, listing_id: int, now: datetime) -> bool:
    """A person says that a listing is no wine of ours. False when it was matched or set aside before."""
    waiting = Listing.objects.filter(pk=listing_id, wine__isnull=True, set_aside_at__isnull=True)
    return waiting.update(set_aside_at=now) == 1


def suggestions(listing: Listing, *, most: int = 5) -> list[Candidate]:
    """The wines that a listing may be, likeliest first, for the person who matches it."""
    listed = as_listed(listing)
    wines = Wine.objects.filter(retired_at__isnull=True)
    if listed.vintage:
        wines = wines.filter(vintage=listed.vintage.year)
    return matching.rank(listed, map(candidate, wines.iterator()), most=most)


def still_described(merchant_id: str, said: Mapping[str, int]) -> dict[str, Listed]:
    """How those listings are described, by source id, of which a file says (as digests) what the last one said."""
    rows = Listing.objects.filter(merchant=merchant_id, source_id__any_of=said)
    stored = rows.values_list("source_id", "file_said", *_SAID, named=True)  # ten thousand models cost a second
    return {row.source_id: as_listed(row) for row in stored if row.file_said == said[row.source_id]}


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


# --- How it is done ---------------------------------------------------------------------------------------------

_SAID = ("title", "name", "vintage", "non_vintage", "pack", "size_ml", "gtin", "lwin", "said_wine_id", "unclear")


def _locked(merchant: Merchant, asks: Sequence[Ask], gone: str | None, doubted: Collection[str]) -> dict[str, Listing]:
    """The listings by their source id, made where they are new, and locked in one order for everybody.

    Each knows as `confirmed_at` the time of the last file that was taken whole.
    """
    ids = sorted(ask.source_id for ask in asks)
    assert len(set(ids)) == len(ids), "one ask for each listing"
    listing_rows.make(merchant, ids)
    rows = (
        Listing.objects.select_for_update(of=("self",))
        .annotate(confirmed_at=F("merchant__catalogue_settings__as_of"))
        .order_by("source_id")
    )
    meant = Q(source_id__any_of=[*ids, *doubted])
    if gone is not None:
        meant |= Q(source_id__startswith=gone) if gone.endswith("/") else Q(source_id=gone)
    return {listing.source_id: listing for listing in rows.filter(meant, merchant=merchant)}


def _lock_wines(listings: Iterable[Listing]) -> None:
    """From now on none of the listings' wines can be retired, and each listing knows whether its wine was."""
    ids = {listing.wine_id for listing in listings if listing.wine_id}
    rows = Wine.objects.select_for_update(no_key=True).filter(pk__any_of=ids).order_by("id").defer("names")
    wines = {wine.pk: wine for wine in rows}
    for listing in listings:
        if listing.wine_id:
            listing.wine = wines[listing.wine_id]


def _state(listing: Listing) -> dict[str, object]:
    return {name: getattr(listing, name) for name in listing_rows.COLUMNS}


def _describe(listing: Listing, ask: Ask, word: FileWord | None) -> None:
    """Make the listing say what the ask says, unless it is older. Without a word of its own it undoes a file's."""
    heard = _last_heard(listing)
    if heard is not None and ask.occurred_at < heard:
        return
    said = _fields(ask.listed)
    if {name: getattr(listing, name) for name in _SAID} != said:
        for name, value in said.items():
            setattr(listing, name, value)
        if listing.matched_by != By.PERSON or _speaks_against(listing):
            listing.wine, listing.matched_by, listing.set_aside_at = None, "", None
        listing.file_said = None
    if (listing.price, listing.currency) != (ask.price, ask.currency):
        listing.file_asked = None
    if word is not None:
        listing.in_file, listing.file_said, listing.file_asked = True, word.said, word.asked
    listing.price, listing.currency, listing.occurred_at = ask.price, ask.currency, ask.occurred_at


def _last_heard(listing: Listing) -> datetime | None:
    """When the merchant last said what the listing says: a file confirms what it does not change, without a write."""
    confirmed: datetime | None = getattr(listing, "confirmed_at", None)
    if confirmed is None or listing.occurred_at is None or listing.file_asked is None:
        return listing.occurred_at
    return max(listing.occurred_at, confirmed)


def _withdraw(listing: Listing, when: datetime) -> bool:
    """Nothing is asked for it any more, unless that is older than what we know. Whether that is news."""
    heard = _last_heard(listing)
    if listing.price is None or (heard is not None and when < heard):
        return False
    listing.price, listing.occurred_at, listing.file_asked = None, when, None
    return True


def _speaks_against(listing: Listing) -> bool:
    assert listing.wine is not None  # a person's match has one
    return bool(listing.unclear or matching.objection(as_listed(listing), candidate(listing.wine)))


def _fields(listed: Listed) -> dict[str, object]:
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


def _match(merchant: Merchant, listings: Iterable[Listing]) -> None:
    """Find the wines of those that wait."""
    waiting = [
        (listing, as_listed(listing)) for listing in listings if listing.wine_id is None and not listing.set_aside_at
    ]
    if not waiting:
        return
    wines = _wines_for([listed for _, listed in waiting])
    candidates = matching.Candidates(map(candidate, wines.values()))
    for listing, listed in waiting:
        found = matching.match(listed, candidates, unsaid_size_ml=merchant.unsaid_size_ml)
        if found:
            listing.wine, listing.matched_by = wines[found.wine_id], found.by.value


def _wines_for(listed: Sequence[Listed]) -> dict[str, Wine]:
    """All wines that one of the listings' marks could name."""
    marks = [
        Q(pk__in={each.wine_id for each in listed if each.wine_id}),
        Q(gtin__in={each.gtin for each in listed if each.gtin}),
        Q(lwin__in={each.lwin for each in listed if each.lwin}),
        Q(names__overlap=sorted({each.name for each in listed if each.name and each.vintage})),
    ]
    # One index for each mark, and one look at each: an OR of all four would be a scan of all wines.
    wines = Wine.objects.filter(retired_at__isnull=True).defer("names")
    return {wine.pk: wine for mark in marks for wine in wines.filter(mark)}


class _Lowest(NamedTuple):
    price: Decimal
    listings: int  # that are this wine


def _lowest(merchant: Merchant, wine_ids: Collection[str | None]) -> dict[str, _Lowest]:
    """The lowest price that the merchant's files ask for each of these wines, where they ask any."""
    rows = Listing.objects.filter(
        merchant=merchant, wine__pk__any_of=wine_ids, in_file=True, file_asked__isnull=False, price__isnull=False
    )
    prices: dict[str, list[Decimal]] = {}
    for wine_id, price in rows.filter(currency=PRICE_CURRENCY).values_list("wine_id", "price"):
        assert price is not None  # by the filter
        prices.setdefault(wine_id, []).append(price)
    return {wine_id: _Lowest(min(asked), len(asked)) for wine_id, asked in prices.items()}


def _why_kept(listing: Listing, ask: Ask) -> Kept | None:
    """Why this price is not to be recorded for the listing's wine, or None when it is."""
    if listing.wine is None:
        return Kept.SET_ASIDE if listing.set_aside_at else Kept.UNMATCHED
    # An older ask may have called the listing something else; then it was not matched.
    if _fields(ask.listed) != {name: getattr(listing, name) for name in _SAID} and (
        ask.listed.unclear or matching.objection(ask.listed, candidate(listing.wine))
    ):
        return Kept.UNMATCHED
    if listing.wine.retired_at:
        return Kept.RETIRED
    if ask.price is None:
        return Kept.NO_PRICE
    return None if ask.currency == PRICE_CURRENCY else Kept.OTHER_CURRENCY


def _observation(listing: Listing, ask: Ask, of_several: Mapping[str, _Lowest], word: FileWord | None) -> Observation:
    assert listing.wine_id is not None  # _why_kept has seen to both
    assert ask.price is not None
    lowest = of_several.get(listing.wine_id)
    # An older ask is about a time of which the other listings say nothing.
    if lowest is None or word is None or listing.occurred_at != ask.occurred_at:
        return Observation(listing.wine_id, ask.price, ask.occurred_at)
    # Another row of the file may have said something of this wine at this time; what is known now is later.
    return Observation(listing.wine_id, lowest.price, ask.occurred_at + timedelta(microseconds=word.n))
