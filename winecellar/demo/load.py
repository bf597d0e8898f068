"""Puts the demo's catalogue into the database: merchants, wines, ninety days of prices, people and their alerts.

Guarantee: run it as often as you like. What is there stays as it is; history is written once, with the offer it
belongs to; a person's alerts and bottles come once, so that what was deleted stays deleted. All or nothing.
Called by `manage.py load_demo_catalogue` and by the demo.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_FLOOR, Decimal

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Min

from alerts.services import Wish, create_alert
from jobs.messages import new_event_id
from pricing import analytics, search_index
from pricing.models import Merchant, Offer, PriceHistory, Wine
from pricing.wines import describe
from winecellar.demo import catalogue
from winecellar.demo.catalogue import Watch
from winecellar.demo.cellar import add_cellar
from winecellar.demo.history import PastPrice, past_prices
from winecellar.demo.market import Listing
from winecellar.demo.shop import add_stock

HISTORY_SEED = 2016


class NotInProductionError(Exception):
    """The demo's people have passwords that everybody can read."""


@dataclass(frozen=True)
class Loaded:
    """How many rows this run added."""

    wines: int
    merchants: int
    offers: int
    past_prices: int
    people: int
    alerts: int
    bottles: int


def load_catalogue(*, now: datetime) -> Loaded:
    """Add what is missing of the catalogue and say how much that was. Raises NotInProductionError in production."""
    if settings.PRODUCTION:
        raise NotInProductionError("The demo's catalogue brings people with known passwords: not in production.")
    with transaction.atomic():
        merchants, wines = _add_merchants(), _add_wines(now)
        offers, prices = _add_offers(now)
        people, alerts = _add_people(now)
        collector = get_user_model().objects.get(email=catalogue.COLLECTOR.email)
        bottles = add_cellar(user_id=collector.pk, now=now)
        add_stock(now=now)
    return Loaded(wines, merchants, offers, prices, people, alerts, bottles)


def listings() -> list[Listing]:
    """Every offer of the catalogue at its usual price."""
    by_id = {merchant.id: merchant for merchant in catalogue.MERCHANTS}
    return [
        Listing(wine.id, merchant_id, catalogue.usual_price(wine, by_id[merchant_id]))
        for wine in catalogue.wines()
        for merchant_id in wine.sold_by
    ]


def endings() -> dict[str, tuple[int, ...]]:
    """The cents that each merchant's prices end in."""
    return {merchant.id: merchant.endings for merchant in catalogue.MERCHANTS}


def _add_merchants() -> int:
    there = set(Merchant.objects.values_list("pk", flat=True))
    missing = [m for m in catalogue.MERCHANTS if m.id not in there]
    Merchant.objects.bulk_create(Merchant(id=m.id, name=m.name, website=m.website) for m in missing)
    return len(missing)


def _add_wines(now: datetime) -> int:
    there = set(Wine.objects.values_list("pk", flat=True))
    missing = [wine for wine in catalogue.wines() if wine.id not in there]
    added = Wine.objects.bulk_create(
        Wine(
            id=wine.id,
            name=wine.name,
            producer=wine.producer,
            vintage=wine.vintage,
            size_ml=wine.size_ml,
            colour=wine.colour,
            country=wine.country,
            region=wine.region,
        )
        for wine in missing
    )
    describe(wines=added, now=now)
    return len(missing)


def _add_offers(now: datetime) -> tuple[int, int]:
    there = set(Offer.objects.values_list("wine_id", "merchant_id"))
    missing = {(listing.wine_id, listing.merchant_id) for listing in listings()} - there
    walked = past_prices(seed=HISTORY_SEED, listings=listings(), endings=endings(), now=now)
    past = [_in_the_books(price) for price in walked if (price.wine_id, price.merchant_id) in missing]
    last = {(row.wine_id, row.merchant_id): row for row in past}  # the walk is in order of time
    Offer.objects.bulk_create(
        Offer(
            wine_id=row.wine_id,
            merchant_id=row.merchant_id,
            price_usd=row.price_usd,
            occurred_at=row.observed_at,
            event_id=row.event_id,
            updated_at=row.observed_at,
            seen_at=now,
        )
        for row in last.values()
    )
    PriceHistory.objects.bulk_create(past, batch_size=1_000)
    # No event told of these prices, so their projections are made here.
    changed = sorted({wine_id for wine_id, _ in missing})
    analytics.rebuild(changed)
    search_index.rebuild(changed)
    return len(last), len(past)


def _in_the_books(price: PastPrice) -> PriceHistory:
    return PriceHistory(
        wine_id=price.wine_id,
        merchant_id=price.merchant_id,
        price_usd=price.price_usd,
        observed_at=price.observed_at,
        recorded_at=price.observed_at,
        event_id=new_event_id(),
    )


def _add_people(now: datetime) -> tuple[int, int]:
    users = get_user_model().objects
    there = set(users.values_list("email", flat=True))
    missing = [person for person in catalogue.PEOPLE if person.email not in there]
    alerts = 0
    for person in missing:
        user = users.create_user(
            person.email,
            person.password,
            confirmed=True,
            name=person.name,
            is_staff=person.is_operator,
            is_superuser=person.is_operator,
        )
        for watch in person.watches:
            create_alert(
                user=user,
                wine=Wine.objects.get(pk=watch.wine_id),
                wish=Wish(
                    target=_target(watch),
                    merchant=Merchant.objects.get(pk=watch.merchant_id) if watch.merchant_id else None,
                ),
                now=now,
            )
            alerts += 1
    return len(missing), alerts


def _target(watch: Watch) -> Decimal:
    """A target that somebody would type: whole dollars, half ones for cheap bottles."""
    offers = Offer.objects.filter(wine_id=watch.wine_id)
    if watch.merchant_id:
        offers = offers.filter(merchant_id=watch.merchant_id)
    wanted: Decimal = offers.aggregate(best=Min("price_usd"))["best"] * watch.part
    step = Decimal("1.00") if wanted >= 100 else Decimal("0.50")
    return (wanted / step).to_integral_value(ROUND_FLOOR) * step
