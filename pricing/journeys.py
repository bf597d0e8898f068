"""What pricing knows of an event's journey: which merchant sent it, by which way in, and the body it was made from.

Reads only, by keys and indexes. Registered in winecellar/journeys.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.conf import settings
from django.urls import reverse

from jobs.journey.hooks import Fact, Found, Published
from jobs.words import utc
from pricing import raw_bodies
from pricing.models import Availability, CatalogueFile, FeedAnswer, Merchant, Offer, PriceHistory, RawBody, Wine

SOUGHT = ("merchant_delivery_id",)
HINT = "a wine (wn_…), an id of a merchant’s for a delivery or an event"
LONGEST_NUMBER = 18
# Attributes that say something as they are, and what they are called.
AS_THEY_ARE = {
    "merchant_delivery_id": "Merchant’s id",
    "merchant_delivery_source": "Merchant’s source",
    "listing": "Listing",
    "matched_by": "Matched by",
    "released_by": "Released by",
}


def not_kept() -> list[str]:
    days = settings.FEED_RAW_BODY_RETENTION.days
    return [
        f"Raw bodies are kept {days} days; so are the answers that a merchant’s retry finds. Retries leave no line."
    ]


def origin(message: Published) -> Iterator[Fact]:
    """Merchant, wine, way in and raw body of a message, as far as it names them: at most 4 queries."""
    merchant_id, wine_id = message.body.get("merchant_id"), message.body.get("wine_id")
    if isinstance(merchant_id, str) and (merchant := Merchant.objects.filter(pk=merchant_id).first()):
        yield Fact("Merchant", merchant.name, reverse("admin:pricing_merchant_change", args=[merchant.pk]))
    if isinstance(wine_id, str) and (wine := Wine.objects.filter(pk=wine_id).first()):
        yield Fact("Wine", f"{wine.full_name} ({wine.pk})", reverse("admin:pricing_wine_change", args=[wine.pk]))
    if raw_id := message.attributes.get(raw_bodies.ATTRIBUTE, ""):
        yield _raw(raw_id)
    if file_id := message.attributes.get("catalogue_file", ""):
        yield _file(file_id)
    for name, words in AS_THEY_ARE.items():
        if said := message.attributes.get(name):
            yield Fact(words, str(said))


def _raw(text: str) -> Fact:
    kept = RawBody.objects.defer("body", "headers").filter(pk=_number(text)).first()
    if kept is None:
        return Fact("Raw body", f"number {text}; no longer kept")
    about = f"{kept.source}, {kept.size:,} bytes, received {utc(kept.received_at)}"
    return Fact("Raw body", about, reverse("admin:pricing_rawbody_change", args=[kept.pk]))


def _file(text: str) -> Fact:
    file = CatalogueFile.objects.filter(pk=_number(text)).first()
    if file is None:
        return Fact("Catalogue file", f"number {text}; no longer known")
    about = f"{file.name or 'without a name'}, received {utc(file.received_at)}"
    return Fact("Catalogue file", about, reverse("admin:pricing_cataloguefile_change", args=[file.pk]))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else 0


def find(text: str) -> Sequence[Found]:
    """The latest events of a wine; those of a merchant's request, by the id that the merchant gave it."""
    if text.startswith("wn_"):
        return sorted(_of_wine(text), key=lambda found: (found.at is not None, found.at), reverse=True)
    merchants = Merchant.objects.values_list("pk", flat=True)
    answers = FeedAnswer.objects.filter(merchant__in=list(merchants), key=text)[: settings.JOURNEY_SHOWN]
    return [
        Found(event_id, f"made of what {answer.merchant_id} sent under that id", answer.created_at)
        for answer in answers
        for event_id in (answer.answer or {}).get("event_ids", [])
    ]


def _of_wine(wine_id: str) -> Iterator[Found]:
    most = settings.JOURNEY_SHOWN
    for offer in Offer.objects.filter(wine=wine_id)[:most]:
        yield Found(offer.event_id, f"the price now at {offer.merchant_id}", offer.updated_at)
    for price in PriceHistory.objects.filter(wine=wine_id).order_by("-observed_at")[:most]:
        yield Found(price.event_id, f"${price.price_usd} at {price.merchant_id}", price.recorded_at)
    for change in Availability.objects.filter(wine=wine_id).order_by("-observed_at")[:most]:
        became = "no longer offered" if change.price_usd is None else "offered again"
        yield Found(change.event_id, f"{became} at {change.merchant_id}", change.recorded_at)
