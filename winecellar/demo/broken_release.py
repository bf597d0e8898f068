"""The course's incident, replayed: a release of a feed adapter loses new_price_usd and pads the currency.

The merchant's bodies are whole, and kept; 341 events made of them within twenty minutes break the contract. Three
of the bodies cannot help: two speak of another wine, one is no longer kept.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from jobs.messages import NewMessage, new_event_id
from jobs.outbox import publish
from pricing import raw_bodies
from pricing.events import PRICE_CHANGED
from pricing.models import Merchant, Offer, RawBody, Wine
from pricing.raw_bodies import Received

MESSAGES = 341
BROKEN = 3
OLD, NEW = Decimal("189.00"), Decimal("154.00")


def wines(count: int = MESSAGES) -> list[Wine]:
    rows = [
        Wine(
            id=f"wn_{7000 + n}",
            name=f"Château {n}",
            producer=f"Château {n}",
            vintage=2016,
            colour="red",
            country="France",
            region="Saint-Estèphe",
        )
        for n in range(count)
    ]
    Wine.objects.bulk_create(rows, ignore_conflicts=True)
    return rows


def release_the_broken_adapter(merchant: Merchant, *, count: int = MESSAGES, broken: int = BROKEN) -> list[str]:
    """Publish what the broken release made of the merchant's bodies; the event ids, in order."""
    now = timezone.now()
    began = now - timedelta(minutes=21)
    messages = []
    for n, wine in enumerate(wines(count)):
        at = began + timedelta(seconds=20 * 60 * n / count)
        spoken_of = "wn_9999" if n < broken - 1 else wine.pk
        attributes = raw_bodies.keep(merchant=merchant, received=_body(spoken_of, at), now=at)
        if n == broken - 1 and broken:
            RawBody.objects.filter(pk=attributes["raw_body"]).delete()
        event_id = new_event_id()
        Offer.objects.create(
            merchant=merchant, wine=wine, price_usd=NEW, occurred_at=_whole(at), seen_at=_whole(at), event_id=event_id
        )
        messages.append(
            NewMessage(
                PRICE_CHANGED,
                wine.pk,
                {
                    "event_id": event_id,
                    "type": PRICE_CHANGED,
                    "occurred_at": _written(at),
                    "wine_id": wine.pk,
                    "wine_name": wine.full_name,
                    "merchant_id": merchant.pk,
                    "old_price_usd": OLD,
                    "currency": "USD ",
                },
                event_id=event_id,
                attributes=attributes,
            )
        )
    with transaction.atomic():
        return publish(messages)


def _body(wine_id: str, at: datetime) -> Received:
    price = {"wine_id": wine_id, "price": float(NEW), "currency": "USD", "occurred_at": _written(at)}
    headers = {"content-type": "application/json"}
    return Received("price-changes", headers, json.dumps(price).encode())


def _whole(at: datetime) -> datetime:
    return at.replace(microsecond=0)


def _written(at: datetime) -> str:
    return _whole(at).astimezone(UTC).isoformat().replace("+00:00", "Z")
