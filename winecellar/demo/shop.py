"""What can be bought in the demo: some bottles of each merchant's first wines, where its orders go, and no card yet.

Guarantee: stock that is there stays as it is. Called by load.py.
"""

from __future__ import annotations

from datetime import datetime

from pricing.models import Merchant, Offer
from winecellar.demo import catalogue
from winecellar.purchases.models import Card, Seller, StockItem

WINES_OF_EACH = 6
BOTTLES = (3, 6, 12, 24)


def add_stock(*, now: datetime) -> int:
    """Add what is missing; how many kinds of bottles that was."""
    Seller.objects.bulk_create(
        [
            Seller(merchant=merchant, orders_to=f"orders@{merchant.pk.replace('_', '-')}.example")
            for merchant in Merchant.objects.filter(pk__in=[each.id for each in catalogue.MERCHANTS], seller=None)
        ]
    )
    # The simulated provider remembers nothing from one run to the next.
    Card.objects.update(method_id="", label="")
    there = set(StockItem.objects.values_list("wine_id", "merchant_id"))
    missing = []
    for each in catalogue.MERCHANTS:
        offers = Offer.objects.filter(merchant_id=each.id).order_by("wine_id")[:WINES_OF_EACH]
        missing += [
            StockItem(
                merchant_id=each.id,
                wine_id=offer.wine_id,
                on_hand=BOTTLES[number % len(BOTTLES)],
                price=offer.price_usd,
                currency="USD",
                changed_at=now,
            )
            for number, offer in enumerate(offers)
            if (offer.wine_id, each.id) not in there
        ]
    return len(StockItem.objects.bulk_create(missing))
