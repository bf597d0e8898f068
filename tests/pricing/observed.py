"""Helpers of the tests of prices: observations, messages as consumers receive them, and the log as it was written."""

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db import connection

from jobs.messages import Message, dumps
from pricing import rates
from pricing.ecb import Published
from pricing.models import Merchant, Offer, Wine
from pricing.rules import Observation
from tests.cast import NOW


def seen(price: str, at: datetime = NOW, wine_id: str = "wn_4417") -> Observation:
    return Observation(wine_id, Decimal(price), at)


def load_rates(day: str, **per_eur: str) -> None:
    """What one euro was worth on that day; the euro's own 1 comes with it."""
    on = date.fromisoformat(day)
    published = [Published(on, currency, Decimal(rate)) for currency, rate in {"EUR": "1", **per_eur}.items()]
    rates.store(published, source="test")


def make_offer(merchant: Merchant, wine: Wine, price: str = "189.00", at: datetime = NOW) -> Offer:
    return Offer.objects.create(
        merchant=merchant, wine=wine, price_usd=Decimal(price), occurred_at=at, seen_at=at, event_id="evt_first"
    )


def received(body: Any, *, type_: str = "wine.price_changed") -> Message:
    """A message as a subscription is handed it; `body` is JSON text or a value."""
    text = body if isinstance(body, str) else dumps(body)
    return Message(
        id=1,
        message_id=1,
        event_id="evt_1",
        type=type_,
        key="wn_4417",
        body_text=text,
        attributes_text=None,
        published_at_text=NOW.isoformat(),
        receive_count=1,
    )


def published() -> list[dict[str, Any]]:
    """The message log in publication order; numbers of the body as Decimal."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, event_id, type, key, body::text, attributes::text FROM jobs_message ORDER BY id")
        rows = cursor.fetchall()
    return [
        {
            "id": id_,
            "event_id": event_id,
            "type": type_,
            "key": key,
            "body": json.loads(body, parse_float=Decimal),
            "attributes": json.loads(attributes),
        }
        for id_, event_id, type_, key, body, attributes in rows
    ]
