"""What people and operators change: buying, the stock, the card. Each function is one transaction.

Guarantee: bottles are never reserved twice, a form sent twice is one purchase, and a price is charged only as the buyer
confirmed it. `buy` locks the stock item; no provider is asked in here.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from jobs.database import pipelined
from jobs.dead_letters.store import write_audit
from jobs.outbox import publish
from pricing.models import Merchant, Wine
from winecellar.purchases import books, facts, reserving
from winecellar.purchases.events import CHARGE_PURCHASE
from winecellar.purchases.models import Card, Purchase, StockItem
from winecellar.purchases.reserving import Looked
from winecellar.purchases.rules import Event, RefusedError

_TOKEN = re.compile(r"[0-9a-f]{32}")


class BuyRefusedError(Exception):
    """It cannot be bought as asked; the text says why, for the buyer. Nothing was changed."""


class PriceChangedError(BuyRefusedError):
    """The price is another than the one that was confirmed."""

    def __init__(self, price: Decimal, currency: str) -> None:
        super().__init__("The price has changed since this page was shown. Nothing was bought. Look at the new price.")
        self.price, self.currency = price, currency


class TooFewError(BuyRefusedError):
    """Others were faster."""

    def __init__(self, free: int) -> None:
        left = {0: "All bottles are sold or reserved now", 1: "Only 1 bottle is left"}.get(
            free, f"Only {free} bottles are left"
        )
        super().__init__(f"{left}. Nothing was bought.")


def buy(
    *, buyer: Any, item_id: int, quantity: int, unit_price: Decimal, currency: str, token: str, now: datetime
) -> Purchase:
    """Reserve the bottles and have the charge begun, at the price that the buyer confirmed.

    The purchase of this token, if there is one already. Raises StockItem.DoesNotExist and BuyRefusedError; and
    IntegrityError where the buyer is being erased.
    """
    if not _TOKEN.fullmatch(token):
        raise BuyRefusedError("This form is not complete. Open the page again.")
    try:
        with transaction.atomic():
            looked = reserving.look(item_id=item_id, buyer_id=buyer.pk, token=token)
            if looked is None:
                raise StockItem.DoesNotExist
            if looked.made is not None:
                return Purchase.objects.get(pk=looked.made)
            _check(looked, quantity, unit_price, currency)
            with pipelined():
                purchase = reserving.reserve(
                    looked,
                    item_id=item_id,
                    buyer_id=buyer.pk,
                    quantity=quantity,
                    token=token,
                    until=now + settings.RESERVATION_TIME,
                    now=now,
                )
                publish([books.command(purchase.pk, CHARGE_PURCHASE)])
    except IntegrityError:
        twin = Purchase.objects.filter(buyer=buyer, token=token).first()
        if twin is None:  # its buyer was erased at this moment
            raise
        return twin  # the same form, sent at the same moment
    return purchase


def _check(looked: Looked, quantity: int, unit_price: Decimal, currency: str) -> None:
    if settings.PAYMENTS is None:
        raise BuyRefusedError("Nothing is sold here now. Nothing was bought.")
    if not looked.confirmed:
        raise BuyRefusedError("Confirm your address first: your receipt goes there.")
    if not looked.method_id:
        raise BuyRefusedError("Add a card first.")
    if looked.retired:
        raise BuyRefusedError("This wine is no longer listed, so it cannot be bought.")
    if not 1 <= quantity <= settings.PURCHASE_MOST_BOTTLES:
        raise BuyRefusedError(f"Buy 1 to {settings.PURCHASE_MOST_BOTTLES} bottles at once.")
    if (unit_price, currency) != (looked.price, looked.currency):
        raise PriceChangedError(looked.price, looked.currency)
    if looked.free < quantity:
        raise TooFewError(looked.free)
    if looked.under_way >= settings.PURCHASES_AT_ONCE:
        raise BuyRefusedError(
            f"{looked.under_way} of your purchases are not paid yet. Wait until one of them is, or has come to nothing."
        )


# --- Stock ------------------------------------------------------------------------------------------------------


def set_stock(
    *, merchant: Merchant, wine: Wine, on_hand: int, price: Decimal, currency: str, now: datetime
) -> StockItem:
    """What a merchant has of a wine now. Raises ValidationError; what is reserved cannot be taken from its buyers."""
    with transaction.atomic():
        found = StockItem.objects.select_for_update(no_key=True).filter(merchant=merchant, wine=wine).first()
        item = found or StockItem(merchant=merchant, wine=wine)
        item.on_hand, item.price, item.currency, item.changed_at = on_hand, price, currency, now
        item.full_clean()
        if found:
            item.save(update_fields=["on_hand", "price", "currency", "changed_at"])
        else:
            item.save()
    return item


# --- Cards ------------------------------------------------------------------------------------------------------


def keep_customer(*, user: Any, customer_id: str, now: datetime) -> None:
    """Whom the provider knows this person as, before they give a card."""
    Card.objects.get_or_create(user=user, defaults={"customer_id": customer_id, "changed_at": now})


def keep_card(*, user: Any, card: facts.Card, now: datetime) -> bool:
    """The card that this person gave; False where it was given by somebody else, whose link this is."""
    kept = Card.objects.filter(user=user, customer_id=card.customer_id)
    return bool(kept.update(method_id=card.method_id, label=card.label[:100], changed_at=now))


def forget_card(*, user: Any, now: datetime) -> None:
    """No more purchases with it; those under way go on with it."""
    Card.objects.filter(user=user).update(method_id="", label="", changed_at=now)


# --- Operators --------------------------------------------------------------------------------------------------


def intervene(*, purchase_id: int, event: Event, by: str, note: str, now: datetime) -> None:
    """A person has a purchase resumed, compensated or marked as resolved; on the audit log, in one transaction.

    Who may is the caller's to check. Raises RefusedError, and Purchase.DoesNotExist.
    """
    if not by.strip():
        raise RefusedError("by: say who decides.")
    if not note.strip():
        raise RefusedError("note: say why. Whoever comes after you will ask.")
    with transaction.atomic():
        before = books.locked(Purchase.objects.filter(pk=purchase_id))
        if not before:
            raise Purchase.DoesNotExist
        books.apply([books.Outcome(purchase_id, event, says=note[:500], by=by)], now=now)
        write_audit(
            by=by,
            action=f"purchase-{event.value}",
            selection=f"purchase {before[0].reference}",
            ids=[],  # of letters: it is about none
            note=note,
            details={"purchase_id": purchase_id, "state": before[0].state},
        )
