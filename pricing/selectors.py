"""Reads about wines and prices, for pages and for alerts. Changes nothing; each says how many queries it makes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery, Value

from pricing.models import Availability, Offer, PriceHistory, Wine
from pricing.timeline import Observation, Step, best_price_steps

CHART_PERIOD = timedelta(days=90)
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class CurrentOffer:
    """What a merchant asks for a wine now, and what it asked at an earlier time (None: it did not offer it then).

    `native_price` and `native_currency` are what it asks where that is not dollars.
    """

    wine_id: str
    merchant_id: str
    merchant_name: str
    price_usd: Decimal
    occurred_at: datetime
    seen_at: datetime
    earlier_price_usd: Decimal | None
    native_price: Decimal | None = None
    native_currency: str = ""
    withdrawn_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ListedWine:
    wine: Wine
    best: CurrentOffer | None
    week_ago_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class WinePrices:
    """One wine's offers, cheapest first, and its best price over the chart's period.

    `merchant_names` has those too that have withdrawn their offers.
    """

    offers: list[CurrentOffer]
    merchant_names: dict[str, str]
    observations: list[Observation]
    since: datetime
    until: datetime

    @property
    def best(self) -> CurrentOffer | None:
        return self.offers[0] if self.offers else None

    @property
    def has_other_money(self) -> bool:
        return any(offer.native_currency for offer in self.offers)

    def steps(self, *, merchant_id: str | None = None) -> list[Step]:
        """The best price over all merchants, or the price of one."""
        chosen = (seen for seen in self.observations if merchant_id in {None, seen.merchant_id})
        return best_price_steps(chosen, since=self.since, until=self.until)


def list_wines(wine_ids: Sequence[str], *, now: datetime) -> list[ListedWine]:
    """These wines, in this order, with their best prices now and a week ago: 2 queries."""
    wines = Wine.objects.in_bulk(wine_ids)
    offers = current_offers(wine_ids, earlier=now - WEEK) if wine_ids else []
    listed = (wines[wine_id] for wine_id in wine_ids if wine_id in wines)
    return [_listed(wine, [offer for offer in offers if offer.wine_id == wine.id]) for wine in listed]


def wine_prices(wine_id: str, *, now: datetime, period: timedelta = CHART_PERIOD) -> WinePrices:
    """Offers and observations of a period, 90 days by default: 2 queries. A late arrival is no price to buy at."""
    since = now - period
    offers = _offers([wine_id], earlier=since)
    observations = [
        *(Observation(since, o.merchant_id, o.earlier_price_usd) for o in offers if o.earlier_price_usd is not None),
        *(Observation(at, merchant_id, price) for at, merchant_id, price, *_ in _history(wine_id, since, now)),
        # The history is a projection and may be seconds behind; the offer is the truth.
        *(Observation(offer.occurred_at, offer.merchant_id, offer.price_usd) for offer in offers),
        *(Observation(offer.withdrawn_at, offer.merchant_id, None) for offer in offers if offer.withdrawn_at),
    ]
    names = {offer.merchant_id: offer.merchant_name for offer in offers}
    return WinePrices([offer for offer in offers if not offer.withdrawn_at], names, observations, since, now)


def current_offers(wine_ids: Sequence[str], *, earlier: datetime) -> list[CurrentOffer]:
    """What is asked for these wines, cheapest first, each with that merchant's price at `earlier`: 1 query."""
    return [offer for offer in _offers(wine_ids, earlier=earlier) if not offer.withdrawn_at]


def cheapest_offers(wine_ids: Iterable[str]) -> list[CurrentOffer]:
    """What is asked for these wines, cheapest first, without any earlier price: 1 query."""
    return [_current(offer, None) for offer in _by_price(list(wine_ids)).filter(withdrawn_at__isnull=True)]


def best_offer(offers: Iterable[CurrentOffer], *, wine_id: str, merchant_id: str | None = None) -> CurrentOffer | None:
    """The first that is of this wine and, if one is named, of this merchant; `offers` come cheapest first."""
    matching = (o for o in offers if o.wine_id == wine_id and merchant_id in {None, o.merchant_id})
    return next(matching, None)


def _offers(wine_ids: Sequence[str], *, earlier: datetime) -> list[CurrentOffer]:
    """Those that are withdrawn among them."""
    of_offer = {"wine_id": OuterRef("wine_id"), "merchant_id": OuterRef("merchant_id"), "observed_at__lte": earlier}
    asked_before = PriceHistory.objects.filter(late=False, **of_offer).order_by("-observed_at", "-id")
    came_or_went = Availability.objects.filter(**of_offer).order_by("-observed_at", "-id")
    offers = _by_price(wine_ids).annotate(
        asked_before=Subquery(asked_before.values("price_usd")[:1]),
        gone_before=Subquery(came_or_went.annotate(gone=Q(price_usd__isnull=True)).values("gone")[:1]),
    )
    return [_current(offer, _earlier_price(offer, earlier)) for offer in offers]


def _earlier_price(offer: Any, earlier: datetime) -> Decimal | None:
    if offer.occurred_at <= earlier:  # one that has stood since then needs no history, which may not have it yet
        was_gone = offer.withdrawn_at is not None and offer.withdrawn_at <= earlier
        return None if was_gone else offer.price_usd
    return None if offer.gone_before else offer.asked_before


def _history(wine_id: str, since: datetime, until: datetime) -> QuerySet[Any, tuple[Any, ...]]:
    """Prices, and Nones where a merchant stopped to offer, in the order of time: 1 query."""
    period = {"wine_id": wine_id, "observed_at__gt": since, "observed_at__lte": until}
    columns = ("observed_at", "merchant_id", "price_usd", "place", "id")
    prices = PriceHistory.objects.filter(late=False, **period).annotate(place=Value(0))
    gaps = Availability.objects.filter(**period).annotate(place=Value(1))  # what is said last at one time holds
    both = prices.order_by().values_list(*columns).union(gaps.order_by().values_list(*columns), all=True)
    return both.order_by("observed_at", "place", "id")


def _by_price(wine_ids: Sequence[str]) -> QuerySet[Offer]:
    return Offer.objects.filter(wine_id__in=wine_ids).select_related("merchant").order_by("price_usd", "merchant__name")


def _current(offer: Offer, earlier_price_usd: Decimal | None) -> CurrentOffer:
    return CurrentOffer(
        wine_id=offer.wine_id,
        merchant_id=offer.merchant_id,
        merchant_name=offer.merchant.name,
        price_usd=offer.price_usd,
        occurred_at=offer.occurred_at,
        seen_at=offer.seen_at,
        earlier_price_usd=earlier_price_usd,
        native_price=offer.native_price,
        native_currency=offer.native_currency,
        withdrawn_at=offer.withdrawn_at,
    )


def _listed(wine: Wine, offers: list[CurrentOffer]) -> ListedWine:
    week_ago = [offer.earlier_price_usd for offer in offers if offer.earlier_price_usd is not None]
    return ListedWine(wine, offers[0] if offers else None, min(week_ago, default=None))
