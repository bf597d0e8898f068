"""Prices relative to today, for pages that show the last week and the last 90 days."""

from datetime import datetime, timedelta
from decimal import Decimal

from django.utils import timezone

from jobs.messages import new_event_id
from pricing import analytics, search_index
from pricing.models import Availability, Merchant, Offer, PriceHistory, Wine
from tests.cast import merchant, wine


def days_ago(days: float) -> datetime:
    return timezone.now() - timedelta(days=days)


def asked(price: str, *, days: float, by: Merchant, of: Wine, late: bool = False) -> None:
    """One row of history."""
    PriceHistory.objects.create(
        wine=of,
        merchant_id=by.pk,
        price_usd=Decimal(price),
        observed_at=days_ago(days),
        event_id=new_event_id(),
        late=late,
    )


def offered(price: str, *, days: float, by: Merchant, of: Wine) -> Offer:
    """What a merchant asks since then, in the books and in the history."""
    asked(price, days=days, by=by, of=of)
    at = days_ago(days)
    return Offer.objects.create(
        merchant=by, wine=of, price_usd=Decimal(price), occurred_at=at, seen_at=timezone.now(), event_id=new_event_id()
    )


def left(merchant_number: str, *, days: float) -> Offer:
    """The merchant has not offered Montrose since then, in the offers and in the history."""
    offer = Offer.objects.get(wine=wine(), merchant=merchant(merchant_number))
    offer.withdrawn_at = days_ago(days)
    offer.save(update_fields=["withdrawn_at"])
    Availability.objects.create(
        wine=offer.wine, merchant_id=offer.merchant_id, observed_at=offer.withdrawn_at, event_id=new_event_id()
    )
    return offer


def came_back(offer: Offer, *, days: float) -> None:
    """At the price it had."""
    offer.withdrawn_at, offer.occurred_at = None, days_ago(days)
    offer.save(update_fields=["withdrawn_at", "occurred_at"])
    Availability.objects.create(
        wine=offer.wine,
        merchant_id=offer.merchant_id,
        price_usd=offer.price_usd,
        observed_at=offer.occurred_at,
        event_id=new_event_id(),
    )


def project() -> None:
    """What the subscriptions would have made of it by now."""
    search_index.rebuild()
    analytics.rebuild()


def fill_cellar() -> None:
    montrose, bandol = (
        wine(),
        wine("2", name="Bandol Rosé", producer="Domaine Tempier", vintage=2022, region="Provence"),
    )
    x, y = merchant(), merchant("083", "La Cave du Pont")
    asked("170.00", days=120, by=x, of=montrose)
    asked("150.00", days=60, by=x, of=montrose)
    asked("171.00", days=30, by=x, of=montrose)
    asked("149.00", days=20, by=y, of=montrose)
    asked("9.00", days=15, by=x, of=montrose, late=True)
    offered("160.00", days=3, by=x, of=montrose)
    offered("168.00", days=10, by=y, of=montrose)
    assert not bandol.offers.exists()
    project()
