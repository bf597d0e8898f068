"""Cellars and bottles for the tests: alice's, with Montrose in it."""

from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction

from jobs.messages import new_event_id
from pricing.models import Merchant, Offer, PriceHistory, Wine
from tests.cast import merchant, person, wine
from winecellar.cellars.models import Bottle, Cellar, Valuation
from winecellar.cellars.services import new_key
from winecellar.cellars.valuation import Valued, value_cellars

SLOT = datetime(2026, 3, 14, 2, 0, tzinfo=UTC)
NIGHT = SLOT.date()


def cellar(owner: str = "alice", **fields: Any) -> Cellar:
    return Cellar.objects.get_or_create(owner=person(owner), defaults=fields)[0]


def bottle(of: Wine | None = None, *, inside: Cellar | None = None, **fields: Any) -> Bottle:
    known = {"name": of.name, "vintage": of.vintage, "size_ml": of.size_ml} if of else {"name": "Old Friend"}
    facts: dict[str, Any] = {"quantity": 1, "keys": [new_key()], **known, **fields}
    for amount, currency in (("paid", "paid_currency"), ("own_value", "own_currency")):
        if facts.get(amount):
            facts[amount] = Decimal(facts[amount])
            facts.setdefault(currency, "USD")
    return Bottle.objects.create(cellar=inside or cellar(), wine=of, linked_by="person" if of else "", **facts)


def offered(
    price: str, *, of: Wine | None = None, by: Merchant | None = None, hours: float = 24, seen: float = 1
) -> None:
    """A merchant asks this since so many hours before the slot, and confirmed it so many hours before it."""
    seller, wanted = by or merchant(), of or wine()
    at = SLOT - timedelta(hours=hours)
    event = new_event_id()
    history(price, of=wanted, by=seller, hours=hours)
    Offer.objects.update_or_create(
        merchant=seller,
        wine=wanted,
        defaults={
            "price_usd": Decimal(price),
            "occurred_at": at,
            "seen_at": SLOT - timedelta(hours=seen),
            "event_id": event,
        },
    )


def history(price: str, *, of: Wine, by: Merchant, hours: float, late: bool = False) -> None:
    PriceHistory.objects.create(
        wine=of,
        merchant_id=by.pk,
        price_usd=Decimal(price),
        observed_at=SLOT - timedelta(hours=hours),
        event_id=new_event_id(),
        late=late,
    )


def unfenced() -> AbstractContextManager[Any]:
    return transaction.atomic()


def value(slot: datetime = SLOT, **options: Any) -> Valued:
    options.setdefault("fenced", unfenced)
    options.setdefault("progress", lambda *_, **__: None)
    return value_cellars(slot=slot, now=slot + timedelta(minutes=1), **options)


def valuation(of: Cellar | None = None, slot: datetime = SLOT) -> Valuation:
    return Valuation.objects.get(cellar=of or cellar(), day=slot.date())
