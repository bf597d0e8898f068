"""What wines cost as matching has consumed it: read before a batch, moved by its events, noted behind it.

Guarantee: an offer that is ahead of the events decides nothing; what is withdrawn is no price. Called by matching
alone, in its transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal

from alerts.models import SeenPrice
from pricing.events import AvailabilityChanged, PriceChanged
from pricing.models import Offer

OfferEvent = PriceChanged | AvailabilityChanged


@dataclass(frozen=True, slots=True)
class Seen:
    """A merchant's price as of the event being judged; when `withdrawn`, what it was.

    `day` is the one whose exchange rate says what it is in other money: that on which it came to be, for ever.
    """

    price: Decimal
    occurred_at: datetime
    event_id: str
    day: date
    withdrawn: bool = False
    native_price: Decimal | None = None
    native_currency: str = ""


Prices = dict[str, Seen]  # by merchant id


LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def after(event: OfferEvent, before: Seen | None = None) -> Seen:
    """The merchant's price as of this event."""
    day = event.occurred_at.astimezone(UTC).date()
    if isinstance(event, PriceChanged):
        return Seen(
            price=event.new_price_usd,
            occurred_at=event.occurred_at,
            event_id=event.event_id,
            day=day,
            native_price=event.native_price,
            native_currency=event.native_currency,
        )
    # An event of its own only says that the price is back; the one that stands is that of the price.
    event_id = event.price_event_id or event.event_id
    if before is not None and before.price == event.price_usd:  # it is what it was, since when it was, in any money
        return replace(before, occurred_at=event.occurred_at, event_id=event_id, withdrawn=not event.offered)
    return Seen(event.price_usd, event.occurred_at, event_id, day, withdrawn=not event.offered)


def prices_before(
    wine_ids: set[str], events: Sequence[OfferEvent], offers: dict[str, dict[str, Offer]]
) -> tuple[dict[str, Prices], dict[str, Prices]]:
    """What each wine cost at each merchant before this batch: as matching has consumed it, and what it never saw.

    The latter was loaded, not announced, or its first event is yet to come. An offer with its first event here counts
    as it was before that.
    """
    consumed: dict[str, Prices] = defaultdict(dict)
    unseen: dict[str, Prices] = defaultdict(dict)
    for wine_id, by_merchant in offers.items():
        for merchant, offer in by_merchant.items():
            unseen[wine_id][merchant] = _standing(offer, withdrawn=offer.withdrawn_at is not None)
    for event in reversed(events):
        prices = consumed[event.wine_id]
        now = unseen[event.wine_id].pop(event.merchant_id, None) or prices.pop(event.merchant_id, None)
        day = event.occurred_at.astimezone(UTC).date()
        if isinstance(event, PriceChanged):
            if event.old_price_usd is not None:
                prices[event.merchant_id] = Seen(event.old_price_usd, LONG_AGO, "", day)
        elif now is not None and now.price == event.price_usd:
            prices[event.merchant_id] = replace(now, occurred_at=LONG_AGO, withdrawn=event.offered)
        else:
            prices[event.merchant_id] = Seen(event.price_usd, LONG_AGO, "", day, withdrawn=event.offered)
    for row in SeenPrice.objects.filter(wine_id__in=wine_ids):
        unseen[row.wine_id].pop(row.merchant_id, None)
        consumed[row.wine_id][row.merchant_id] = _standing(row, withdrawn=row.withdrawn)
    return consumed, unseen


def _standing(row: Offer | SeenPrice, *, withdrawn: bool) -> Seen:
    return Seen(
        price=row.price_usd,
        occurred_at=row.occurred_at,
        event_id=row.event_id,
        day=row.occurred_at.astimezone(UTC).date(),
        withdrawn=withdrawn,
        native_price=row.native_price,
        native_currency=row.native_currency,
    )


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
            native_price=prices[wine_id][merchant].native_price,
            native_currency=prices[wine_id][merchant].native_currency,
        )
        for wine_id, merchant in sorted(moved)
    ]
    SeenPrice.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["wine", "merchant"],
        update_fields=["price_usd", "withdrawn", "occurred_at", "event_id", "native_price", "native_currency"],
    )


def offered_by(prices: Prices, merchant_id: str | None) -> Prices:
    """What is offered, by one merchant or by any."""
    return {
        merchant: seen for merchant, seen in prices.items() if merchant_id in (None, merchant) and not seen.withdrawn
    }
