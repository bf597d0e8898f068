"""The cast of the tests: alice watches, bob watches too, charlie operates; two merchants; the course's own wine."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.db import transaction

from alerts.models import Alert
from jobs.outbox import publish
from pricing.events import PriceChanged
from pricing.models import Merchant, Offer, Wine
from winecellar.accounts.models import User
from winecellar.accounts.second_factor import has_app

NOW = datetime(2026, 3, 14, 9, 12, 4, tzinfo=UTC)


def person(name: str = "alice", *, confirmed: bool = True) -> User:
    """Somebody with an address, which is confirmed unless it is said otherwise."""
    email = f"{name}@winecellar.example"
    there = User.objects.filter(email=email).first()
    return there or User.objects.create_user(email, confirmed=confirmed, name=name.title())


def with_app(user: User) -> User:
    """The same person with a second factor, which the admin asks for."""
    if not has_app(user):
        TOTP.activate(user, generate_totp_secret())
    return user


def merchant(number: str = "082", name: str = "Merchant X") -> Merchant:
    return Merchant.objects.get_or_create(id=f"mch_{number}", defaults={"name": name})[0]


def wine(number: str = "4417", **fields: Any) -> Wine:
    facts = {
        "name": "Ch. Montrose",
        "producer": "Château Montrose",
        "vintage": 2016,
        "colour": "red",
        "country": "France",
        "region": "Saint-Estèphe",
    }
    return Wine.objects.get_or_create(id=f"wn_{number}", defaults={**facts, **fields})[0]


def alert(target: str | None = "160.00", *, state: str = "armed", owner: str = "alice", **fields: Any) -> Alert:
    amount = None if target is None else Decimal(target)
    told = {"last_notified_at": NOW, "last_notified_price": amount or Decimal(160)} if state == "fired" else {}
    return Alert.objects.create(
        user=person(owner), wine=fields.pop("wine", None) or wine(), target=amount, state=state, **told, **fields
    )


def price(
    new: str, *, old: str | None = None, at: Merchant | None = None, of: Wine | None = None, minutes: int = 0
) -> PriceChanged:
    """Write an offer and publish its event, as feed intake does, in one transaction."""
    seller, bottle = at or merchant(), of or wine()
    before = Offer.objects.filter(merchant=seller, wine=bottle).first()
    event = PriceChanged(
        event_id=_mint(),
        wine_id=bottle.pk,
        wine_name=bottle.full_name,
        merchant_id=seller.pk,
        old_price_usd=Decimal(old) if old else (before.price_usd if before else None),
        new_price_usd=Decimal(new),
        currency="USD",
        occurred_at=NOW + timedelta(minutes=minutes),
    )
    with transaction.atomic():
        Wine.objects.select_for_update(no_key=True).get(pk=bottle.pk)
        Offer.objects.update_or_create(
            merchant=seller,
            wine=bottle,
            defaults={
                "price_usd": event.new_price_usd,
                "occurred_at": event.occurred_at,
                "event_id": event.event_id,
                "seen_at": event.occurred_at,
            },
        )
        publish([event.as_message()])
    return event


def _mint() -> str:
    from jobs.messages import new_event_id

    return new_event_id()
