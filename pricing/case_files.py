"""What pricing knows about its dead letters: the merchant, the raw body, what a mended adapter makes of it now.

Guarantee: reads only, but for `retake`. Registered in winecellar/case_files.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.urls import reverse

from jobs.dead_letters.case_files import CannotError, Case, RawSource
from jobs.messages import NewMessage
from jobs.words import utc
from pricing import listings, rates, raw_bodies
from pricing.contract import PRICE_CURRENCY, parse_time
from pricing.events import LATE_PRICE_OBSERVED, PRICE_CHANGED, PriceChanged, number
from pricing.feeds import shop_intake
from pricing.feeds.errors import FeedError
from pricing.feeds.readapt import BodyCutError, Readapted, readapt
from pricing.feeds.shops import UnknownTopicError
from pricing.models import Offer, RawBody, Wine
from pricing.rules import Observation

LONGEST_SHOWN = 20_000
PRICES = (PRICE_CHANGED, LATE_PRICE_OBSERVED)


def origin(message_type: str, body: Any) -> str:
    """The merchant that a message came from, or "" where none is named."""
    merchant = body.get("merchant_id") if isinstance(body, Mapping) else None
    return merchant if isinstance(merchant, str) else ""


def raw(attributes: Mapping[str, str]) -> RawSource | None:
    """The body that an event was made from, secrets masked; None where it names none, or it is gone."""
    raw_id = _raw_id(attributes)
    kept = RawBody.objects.filter(pk=raw_id).first() if raw_id else None
    if kept is None:
        return None
    text = raw_bodies.readable(kept)
    return RawSource(
        text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + " …",
        f"{kept.source} of {kept.merchant_id}, {kept.size:,} bytes, received {utc(kept.received_at)}",
        reverse("admin:pricing_rawbody_change", args=[kept.pk]),
        "pricing.view_rawbody",
    )


def _raw_id(attributes: Mapping[str, str]) -> int | None:
    text = attributes.get(raw_bodies.ATTRIBUTE, "")
    return int(text) if text.isdecimal() and len(text) < 19 else None


def superseded(cases: Sequence[Case]) -> set[int]:
    """The letters whose merchant has said something newer of that wine since, which we have applied."""
    known: dict[int, tuple[tuple[str, str], datetime]] = {}
    for case in cases:
        body = case.body
        if case.type == LATE_PRICE_OBSERVED or not isinstance(body, Mapping):
            continue  # a late price is history from the start
        wine, merchant, at = body.get("wine_id"), body.get("merchant_id"), _time(body.get("occurred_at"))
        if isinstance(wine, str) and isinstance(merchant, str) and at:
            known[case.letter_id] = ((wine, merchant), at)
    if not known:
        return set()
    wines = {wine for (wine, _), _ in known.values()}
    offers = {(offer.wine_id, offer.merchant_id): offer for offer in Offer.objects.filter(wine__in=wines)}
    return {id_ for id_, (where, at) in known.items() if where in offers and _stands_since(offers[where]) > at}


def _stands_since(offer: Offer) -> datetime:
    return max(offer.occurred_at, offer.withdrawn_at or offer.occurred_at)


def _time(text: Any) -> datetime | None:
    try:
        return parse_time(text if isinstance(text, str) else "")
    except ValueError:
        return None


# --- Reading again ----------------------------------------------------------------------------------------------


class _Reader:
    """Each raw body is read once, however many letters came of it."""

    def __init__(self) -> None:
        self._read: dict[int, Readapted | CannotError] = {}

    def read(self, case: Case) -> Readapted:
        raw_id = _raw_id(case.attributes)
        if raw_id is None:
            raise CannotError("it names no raw body to read again")
        if raw_id not in self._read:
            self._read[raw_id] = _read(raw_id)
        found = self._read[raw_id]
        if isinstance(found, CannotError):
            raise found
        return found


def _read(raw_id: int) -> Readapted | CannotError:
    try:
        return readapt(raw_id)
    except RawBody.DoesNotExist:
        return CannotError("its raw body is no longer kept")
    except BodyCutError as error:
        return CannotError(str(error))
    except UnknownTopicError:
        return CannotError("the raw body is about no product, and would be ignored now")
    except FeedError as error:
        return CannotError(f"the raw body still cannot be read: {error.message}")


def readapt_letters(cases: Sequence[Case]) -> list[NewMessage | CannotError]:
    """For each letter the message that the adapters, as they are now, make of its raw body; or why they make none."""
    reader = _Reader()
    made: list[NewMessage | CannotError] = []
    for case in cases:
        try:
            readapted = reader.read(case)
            made.append(_again(case, readapted))
        except CannotError as error:
            made.append(error)
    return made


def _again(case: Case, readapted: Readapted) -> NewMessage:
    """The same event, with what the body says of its wine now. Other money is converted by the rate of its day."""
    if case.type == shop_intake.UNREADABLE:
        return NewMessage(case.type, case.key, case.body, case.event_id)
    if case.type not in PRICES:
        raise CannotError(f"{case.type} is not made from a raw body alone")
    [seen] = rates.convert([_observation(case, readapted.observations)], any_age=True)
    if seen.price_usd is None:
        raise CannotError(f"no exchange rate of {seen.native_currency} is known")
    old = case.body.get("old_price_usd")
    event = PriceChanged(
        event_id=case.event_id,
        wine_id=seen.wine_id,
        wine_name=_name(case, seen.wine_id),
        merchant_id=origin(case.type, case.body),
        old_price_usd=number(old),
        new_price_usd=seen.price_usd,
        currency=PRICE_CURRENCY,
        occurred_at=seen.occurred_at,
        native_price=seen.native_price,
        native_currency=seen.native_currency,
    )
    return event.as_message(case.type)


def _observation(case: Case, observations: Sequence[Observation]) -> Observation:
    """Of those about the letter's wine (its key) the one of the same time; the only one, if there is one."""
    of_it = [seen for seen in observations if seen.wine_id == case.key]
    at = _time(case.body.get("occurred_at")) if isinstance(case.body, Mapping) else None
    same = [seen for seen in of_it if seen.occurred_at == at]
    chosen = same if same else of_it
    if not chosen:
        raise CannotError("the raw body has no price of this wine")
    if len({(seen.occurred_at, seen.asked) for seen in chosen}) > 1:
        raise CannotError("the raw body has several prices of this wine, and nothing says which this was")
    return chosen[0]


def _name(case: Case, wine_id: str) -> str:
    named = case.body.get("wine_name")
    if isinstance(named, str) and named:
        return named
    wine = Wine.objects.filter(pk=wine_id).first()
    return wine.full_name if wine else ""


def retake(case: Case, now: datetime) -> None:
    """Take an unreadable webhook again, as if it had just come: its listings, prices and events. Raises CannotError."""
    brought = _Reader().read(case).brought
    kept = RawBody.objects.select_related("merchant").get(pk=_raw_id(case.attributes) or 0)
    if brought is None:
        raise CannotError("its raw body is not a shop's webhook")
    listings.record(
        merchant=kept.merchant,
        asks=brought.asks,
        gone=brought.gone,
        gone_at=brought.when,
        attributes=case.attributes,
        now=now,
    )
