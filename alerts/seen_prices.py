"""What wines cost as matching has consumed it: read before a batch, moved by its events, noted behind it.

Guarantee: an offer that is ahead of the events decides nothing here; what is withdrawn is no price. Called by matching
alone, in its transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from alerts.models import Alert, SeenPrice
from pricing.events import AvailabilityChanged, PriceChanged
from pricing.models import Offer

OfferEvent = PriceChanged | AvailabilityChanged


@dataclass(frozen=True)
class Seen:
    """A merchant's price as of the event being judged; when `withdrawn`, what it was."""

    price: Decimal
    occurred_at: datetime
    event_id: str
    withdrawn: bool = False


Prices = dict[str, Seen]  # by merchant id


LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def after(event: OfferEvent) -> Seen:
    """The merchant's price as of this event."""
    if isinstance(event, PriceChanged):
        return Seen(event.new_price_usd, event.occurred_at, event.event_id)
    # An event of its own only says that the price is back; the one that stands is that of the price.
    event_id = event.price_event_id or event.event_id
    return Seen(event.price_usd, event.occurred_at, event_id, withdrawn=not event.offered)


def prices_before(
    wine_ids: set[str], events: Sequence[OfferEvent], offers: dict[str, dict[str, Offer]]
) -> dict[str, Prices]:
    """What each wine cost at each merchant before this batch, as matching has consumed it.

    An offer that matching never saw change (it was loaded, not announced) counts as it is, or as it was before its
    first event here.
    """
    prices: dict[str, Prices] = defaultdict(dict)
    for wine_id, by_merchant in offers.items():
        for merchant, offer in by_merchant.items():
            withdrawn = offer.withdrawn_at is not None
            prices[wine_id][merchant] = Seen(offer.price_usd, offer.occurred_at, offer.event_id, withdrawn)
    for event in reversed(events):
        prices[event.wine_id].pop(event.merchant_id, None)
        if isinstance(event, PriceChanged):
            if event.old_price_usd is not None:
                prices[event.wine_id][event.merchant_id] = Seen(event.old_price_usd, LONG_AGO, "")
        else:
            prices[event.wine_id][event.merchant_id] = Seen(event.price_usd, LONG_AGO, "", withdrawn=event.offered)
    for row in SeenPrice.objects.filter(wine_id__in=wine_ids):
        prices[row.wine_id][row.merchant_id] = Seen(row.price_usd, row.occurred_at, row.event_id, row.withdrawn)
    return prices


def remember(events: Iterable[OfferEvent], prices: dict[str, Prices]) -> None:
    """Note what has been consumed, for the next batch."""
    moved = {(event.wine_id, event.merchant_id) for event in events}
    rows = [
        SeenPrice(
            wine_id=wine_id,
            merchant_id=merchant,
            price_usd=prices[wine_id][merchant].price,
            withdrawn=prices[wine_id][merchant].withdrawn,
            occurred_at=prices[wine_id][merchant].occurred_at,
            event_id=prices[wine_id][merchant].event_id,
        )
        for wine_id, merchant in sorted(moved)
    ]
    SeenPrice.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["wine", "merchant"],
        update_fields=["price_usd", "withdrawn", "occurred_at", "event_id"],
    )


def offered_to(alert: Alert, prices: Prices) -> Prices:
    """What is offered by the merchants that the alert listens to."""
    return {
        merchant: seen
        for merchant, seen in prices.items()
        if alert.merchant_id in (None, merchant) and not seen.withdrawn
    }


def best_for(alert: Alert, prices: Prices) -> Decimal | None:
    return min((seen.price for seen in offered_to(alert, prices).values()), default=None)
