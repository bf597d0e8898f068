"""A shop with bottles, buyers with cards, and a payment provider on this machine that the real adapter speaks to."""

from __future__ import annotations

import secrets
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.utils import timezone

from jobs.models import Delivery
from jobs.worker import drain
from pricing.models import Merchant
from tests import cast
from winecellar.accounts.models import User
from winecellar.demo.payments_api import PaymentServer
from winecellar.demo.payments_bank import Bank
from winecellar.purchases import services, upkeep
from winecellar.purchases.models import Card, Entry, Money, Purchase, PurchaseMail, Seller, StockItem
from winecellar.purchases.rules import ENDED, NEEDS_PERSON, RESERVES, Event, State

SUBSCRIPTIONS = ("purchase-payment", "purchase-mail")


def stock(on_hand: int = 12, price: str = "154.00", *, number: str = "4417", currency: str = "USD") -> StockItem:
    merchant = cast.merchant()
    Seller.objects.get_or_create(merchant=merchant, defaults={"orders_to": "orders@merchant.example"})
    return services.set_stock(
        merchant=merchant,
        wine=cast.wine(number),
        on_hand=on_hand,
        price=Decimal(price),
        currency=currency,
        now=timezone.now(),
    )


def buyer(provider: PaymentServer, name: str = "alice", *, declines: str = "") -> User:
    user = cast.person(name)
    customer = provider.bank.add_customer({})
    card = provider.bank.add_card(customer["id"], declines=declines)
    Card.objects.update_or_create(
        user=user,
        defaults={
            "customer_id": customer["id"],
            "method_id": card["id"],
            "label": "Visa ending in 4242",
            "changed_at": timezone.now(),
        },
    )
    return user


def buy(user: User, item: StockItem, quantity: int = 1, **given: Any) -> Purchase:
    facts = {"unit_price": item.price, "currency": item.currency, "token": secrets.token_hex(16), "now": timezone.now()}
    return services.buy(buyer=user, item_id=item.pk, quantity=quantity, **{**facts, **given})


def work(*, waits: bool = False) -> None:
    """What workers would do now; `waits`: also what is put back, until nothing is left."""
    for _ in range(40):
        if waits:
            at_once()
        drain(SUBSCRIPTIONS)
        if not waits or not Delivery.objects.filter(subscription__name__in=SUBSCRIPTIONS).exists():
            return
    raise AssertionError("the queue does not empty")


def work_until_taken(provider: PaymentServer, purchase: Purchase) -> None:
    """Until the provider has the money, whether we were told or not: on a busy machine some answers come too late."""
    for _ in range(40):
        work()
        if provider.bank.taken().get(purchase.reference):
            return
        at_once()
    raise AssertionError("the card is never charged")


def at_once() -> None:
    """Whatever waits, in backoff, for a breaker or in a dead process's lease, may go."""
    Delivery.objects.update(visible_at=timezone.now() - timedelta(seconds=1))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_breaker")


def later(purchase: Purchase, **ago: float) -> None:
    """As if its reservation had run out, and its state had been reached, so long ago."""
    at = timezone.now() - timedelta(**ago)
    Purchase.objects.filter(pk=purchase.pk).update(reserved_until=at, changed_at=at)


def upkeep_now(now: datetime | None = None) -> Counter[Event]:
    """What the minute's job would do."""
    from django.db import transaction

    done = Counter[Event]()
    for event, due in upkeep.due(timezone.now()).items():
        with transaction.atomic():
            done[event] += upkeep.settle(event, due, now=now or timezone.now())
    return done


def state_of(purchase: Purchase) -> State:
    return State(Purchase.objects.values_list("state", flat=True).get(pk=purchase.pk))


def wipe(provider: PaymentServer) -> None:
    """All purchases, as no code of ours could, and the provider's books."""
    provider.bank = Bank()
    provider.keys.clear()
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE purchases_purchase, purchases_entry, purchases_money, purchases_purchasemail,"
            " purchases_stockitem, purchases_providerreport"
        )
        cursor.execute("DELETE FROM jobs_delivery")
        cursor.execute("DELETE FROM jobs_message")
        cursor.execute("DELETE FROM processed_messages")
        cursor.execute("DELETE FROM jobs_breaker")


# --- What must always be so ------------------------------------------------------------------------------------


def check_books(provider: PaymentServer, *, bottles: dict[int, int], ended: bool = True) -> None:
    """Both ledgers, the stock, the log and the mails tell one story. `bottles`: what each stock item had at first."""
    taken = provider.bank.taken()
    for item in StockItem.objects.all():
        mine = list(Purchase.objects.filter(item=item))
        sold = sum(row.quantity for row in mine if row.state in (State.NOTIFYING, State.COMPLETED))
        held = sum(row.quantity for row in mine if row.state in RESERVES)
        assert item.on_hand == bottles[item.pk] - sold, "bottles that were sold, and no others, have left the stock"
        assert item.reserved == held, "what is reserved is what somebody still waits for"
    for row in Purchase.objects.all():
        state = State(row.state)
        ours = sum((m.amount if m.kind != Money.Kind.REFUND else -m.amount for m in row.money.all()), Decimal(0))
        theirs = Decimal(taken.get(row.reference, 0)) / 100
        if ended:
            assert state in ENDED | NEEDS_PERSON, f"{row.reference} is left in {state}"
        if state in ENDED:
            assert ours == theirs, f"{row.reference}: our ledger says {ours}, the provider's {theirs}"
            assert theirs == (row.amount if state is State.COMPLETED else 0), f"{row.reference}, {state}: {theirs}"
        kinds = set(row.mails.filter(state=PurchaseMail.State.SENT).values_list("kind", flat=True))
        if state is not State.COMPLETED and state is not State.NOTIFYING:
            assert not kinds & {"bought", "sold"}, f"{row.reference}: told of a purchase that did not happen"
        if state is State.COMPLETED:
            assert kinds == {"bought", "sold"}, f"{row.reference}: {kinds}"
        _check_log(row)
    intents = Counter(each["metadata"].get("purchase") for each in provider.bank.intents.values())
    charged = Counter(
        each["metadata"].get("purchase") for each in provider.bank.intents.values() if each["amount_received"]
    )
    assert all(count == 1 for count in charged.values()), charged
    assert intents.keys() <= set(Purchase.objects.values_list("reference", flat=True)) | {None}


def _check_log(row: Purchase) -> None:
    """Every change stands in the log, each from where the last one led to."""
    state = State.CHARGING.value
    for entry in row.entries.filter(kind__in=[Entry.Kind.CHANGED, Entry.Kind.LOST]):
        if entry.came_from:
            assert entry.came_from == state, f"{row.reference}: {entry.came_from} does not follow {state}"
            state = entry.state
    assert state == row.state


def merchant() -> Merchant:
    return cast.merchant()
