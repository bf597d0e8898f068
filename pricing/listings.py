"""Listings: what shops ask for what they list, matched to wines, or kept until a person has matched it.

Guarantee: a listing's price is recorded only for the wine it is matched to, and only while nothing that the listing
says speaks against that wine; the price of one that waits is kept, and recorded when it is matched. A person's match
lasts until the listing says something else. A merchant's offer of a wine is withdrawn when the last of its listings
with a price goes. Called by the feeds of shops and by the admin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import connection, transaction
from django.db.models import F, Q

from pricing import delisting, file_order, listing_rows, matching
from pricing.contract import CURRENCIES
from pricing.delisting import End
from pricing.file_order import FileWord
from pricing.listing_state import ASKED, SAID, State, as_listed, candidate, describe, fields, state_of, withdraw
from pricing.listing_wines import match_waiting
from pricing.matching import Ask, By, Listed
from pricing.models import Listing, Merchant, Wine
from pricing.rules import Observation
from pricing.services import Outcome, record_observations


class Kept(StrEnum):
    """Why a listing's price was kept and not recorded."""

    UNMATCHED = "unmatched"  # it waits for a person
    SET_ASIDE = "set aside"  # a person said that it is no wine of ours
    NO_PRICE = "no price"
    OUT_OF_STOCK = "out of stock"
    NO_CURRENCY = "no currency"  # nobody has told us which money the merchant's prices are in
    GONE = "gone"  # the merchant no longer sells it
    RETIRED = "retired"  # the wine is no longer listed here


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one listing: recorded, with its outcome, or kept."""

    source_id: str
    outcome: Outcome | None
    kept: Kept | None


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
        before = {source_id: state_of(listing) for source_id, listing in listings.items()}
        for ask in asks:
            describe(listings[ask.source_id], ask, words[ask.source_id] if words else None)
        for source_id in listings.keys() & set(doubted):
            listings[source_id].file_asked = None
        left = sorted(listings.keys() - {ask.source_id for ask in asks} - set(doubted))
        withdrawn = [source_id for source_id in left if withdraw(listings[source_id], gone_at or now)]
        match_waiting(merchant, listings.values())
        changed = [listing for source_id, listing in listings.items() if state_of(listing) != before[source_id]]
        listing_rows.write(changed)
        wines = _lock_wines(listings.values(), before)
        kept = [_why_kept(listings[ask.source_id], ask) for ask in asks]
        observed = [ask for ask, why in zip(asks, kept, strict=True) if why is None]
        reasons = {ask.source_id: why for ask, why in zip(asks, kept, strict=True) if why}
        prices = [_observation(listings[ask.source_id], ask) for ask in observed]
        rows = _rows(listings, asks, words or {})
        numbers = [rows.get(ask.source_id) for ask in observed]
        ends = _ends(changed, before, reasons, rows, now)
        # Where a row of the file asks a price, that is what stands for the wine, and nothing ends.
        priced = {seen.wine_id for seen, n in zip(prices, numbers, strict=True) if n is not None}
        delisting.end_offers(merchant, [end for end in ends if end.wine_id not in priced], wines, attributes, now)
        outcomes = record_observations(
            merchant=merchant,
            observations=file_order.in_order(merchant, prices, numbers),
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
    gone: str | None,
    at: datetime,
    attributes: Mapping[str, str],
    now: datetime,
) -> list[str]:
    """Listings that a file no longer has, as of `at`; if that means that they are `gone`, and why, they have no price.

    Returns the wines whose offers ended by it.
    """
    with transaction.atomic():
        rows = Listing.objects.select_for_update(of=("self",)).order_by("source_id")
        left = list(rows.filter(merchant=merchant, source_id__any_of=source_ids))
        for listing in left:
            listing.in_file, listing.file_said, listing.file_asked = False, None, None
            if gone:
                withdraw(listing, at)
        listing_rows.write(left)
        if not gone:
            return []
        wines = _lock_wines(left, {})
        ends = [End(listing.wine_id, at, gone) for listing in left if listing.wine_id and listing.price is None]
        return delisting.end_offers(merchant, ends, wines, attributes, now)


def match(*, listing_id: int, wine_id: str, by: str, now: datetime) -> Result:
    """A person says which wine a listing is, once and for all; its kept price is recorded. Raises MismatchError."""
    with transaction.atomic():
        rows = Listing.objects.select_for_update(of=("self",)).select_related("merchant", "wine")
        listing = rows.get(pk=listing_id)
        before = state_of(listing)
        wines = _locked_wines({wine_id, listing.wine_id})
        wine = wines.get(wine_id)
        if wine is None or wine.retired_at:
            raise MismatchError("We do not list that wine, or no longer.")
        if against := matching.objection(as_listed(listing), candidate(wine)):
            raise MismatchError(against)
        listing.wine, listing.matched_by, listing.set_aside_at = wine, By.PERSON.value, None
        listing.save(update_fields=["wine", "matched_by", "set_aside_at"])
        if listing.occurred_at is None:
            return Result(listing.source_id, None, Kept.NO_PRICE)
        attributes = {"matched_by": by, "listing": listing.source_id}
        ends = delisting.ends(listing, was=before["wine_id"], why=Kept.NO_PRICE, since=listing.occurred_at)
        delisting.end_offers(listing.merchant, ends, wines, attributes, now)
        ask = Ask(listing.source_id, as_listed(listing), listing.price, listing.currency, listing.occurred_at)
        if why := _why_kept(listing, ask):
            return Result(listing.source_id, None, why)
        [outcome] = record_observations(
            merchant=listing.merchant,
            observations=[_observation(listing, ask)],
            attributes=attributes,
            now=now,
        )
        return Result(listing.source_id, outcome, None)


def set_aside(*, listing_id: int, now: datetime) -> bool:
    """A person says that a listing is no wine of ours. False when it was matched or set aside before."""
    waiting = Listing.objects.filter(pk=listing_id, wine__isnull=True, set_aside_at__isnull=True)
    return waiting.update(set_aside_at=now) == 1


def observations_of(merchant: Merchant, asks: Sequence[Ask]) -> list[Observation]:
    """The prices among these asks that would be recorded as the listings stand now; changes nothing."""
    ids = [ask.source_id for ask in asks]
    rows = Listing.objects.filter(merchant=merchant, source_id__in=ids).select_related("wine")
    listings = {listing.source_id: listing for listing in rows}
    known = [(listings[ask.source_id], ask) for ask in asks if ask.source_id in listings]
    return [_observation(listing, ask) for listing, ask in known if _why_kept(listing, ask) is None]


def still_described(merchant_id: str, said: Mapping[str, int]) -> dict[str, Listed]:
    """How those listings are described, by source id, of which a file says (as digests) what the last one said."""
    rows = Listing.objects.filter(merchant=merchant_id, source_id__any_of=said)
    stored = rows.values_list("source_id", "file_said", *SAID, named=True)  # ten thousand models cost a second
    return {row.source_id: as_listed(row) for row in stored if row.file_said == said[row.source_id]}


# --- How it is done ---------------------------------------------------------------------------------------------


def _locked(merchant: Merchant, asks: Sequence[Ask], gone: str | None, doubted: Collection[str]) -> dict[str, Listing]:
    """The listings by their source id, made where they are new, and locked in one order for everybody.

    Each knows as `confirmed_at` the time of the last file that was taken whole.
    """
    if gone is not None:
        _lock_family(merchant, gone)
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


def _lock_family(merchant: Merchant, gone: str) -> None:
    """Keep others from adding a listing that begins so: no row of it is there yet for us to lock and to take away."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"listings {merchant.pk} {gone}"])


def _lock_wines(listings: Iterable[Listing], before: Mapping[str, State]) -> dict[str, Wine]:
    """From now on none of the listings' wines can be retired, and each listing knows whether its wine was.

    Those that they were before are locked with them: their offers may end.
    """
    were = {state["wine_id"] for state in before.values()}
    wines = _locked_wines({*were, *(listing.wine_id for listing in listings)})
    for listing in listings:
        if listing.wine_id:
            listing.wine = wines[listing.wine_id]
    return wines


def _locked_wines(ids: Iterable[str | None]) -> dict[str, Wine]:
    wanted = {id_ for id_ in ids if id_}
    rows = Wine.objects.select_for_update(no_key=True).filter(pk__any_of=wanted).order_by("id").defer("names", "words")
    return {wine.pk: wine for wine in rows}


def _rows(listings: Mapping[str, Listing], asks: Sequence[Ask], words: Mapping[str, FileWord]) -> dict[str, int]:
    """The numbers of the file's rows that say what their listings say now, by source id."""
    current = (ask.source_id for ask in asks if listings[ask.source_id].occurred_at == ask.occurred_at)
    return {source_id: words[source_id].n for source_id in current if source_id in words}


def _ends(
    changed: Iterable[Listing],
    before: Mapping[str, State],
    reasons: Mapping[str, Kept],
    rows: Mapping[str, int],
    now: datetime,
) -> list[End]:
    """What the changed listings speak of no longer. In a file that is so after all rows that come with these."""
    last = max(rows.values(), default=0)
    found: list[End] = []
    for listing in changed:
        was, why = before[listing.source_id], reasons.get(listing.source_id, Kept.GONE)
        if any(getattr(listing, name) != was[name] for name in ASKED):
            since = listing.occurred_at or now
            if listing.source_id in rows:
                since = file_order.moment(since, last)
            found += delisting.ends(listing, was=was["wine_id"], why=why, since=since)
    return found


def _why_kept(listing: Listing, ask: Ask) -> Kept | None:
    """Why this price is not to be recorded for the listing's wine, or None when it is."""
    if listing.wine is None:
        return Kept.SET_ASIDE if listing.set_aside_at else Kept.UNMATCHED
    # An older ask may have called the listing something else; then it was not matched.
    if fields(ask.listed) != {name: getattr(listing, name) for name in SAID} and (
        ask.listed.unclear or matching.objection(ask.listed, candidate(listing.wine))
    ):
        return Kept.UNMATCHED
    if listing.wine.retired_at:
        return Kept.RETIRED
    if not ask.in_stock:
        return Kept.OUT_OF_STOCK
    if ask.price is None:
        return Kept.NO_PRICE
    return None if ask.currency in CURRENCIES else Kept.NO_CURRENCY


def _observation(listing: Listing, ask: Ask) -> Observation:
    assert listing.wine_id is not None  # _why_kept has seen to both
    assert ask.price is not None
    return Observation.of(listing.wine_id, ask.price, ask.currency, ask.occurred_at, tax=ask.tax)
