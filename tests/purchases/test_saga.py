"""A purchase from the reservation to its end, by the real adapter against a provider that misbehaves on purpose."""

import socket
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from jobs.messages import Message
from jobs.models import DeadLetter, Delivery, LoggedMessage
from tests.purchases.cast import (
    at_once,
    buy,
    buyer,
    check_books,
    later,
    state_of,
    stock,
    upkeep_now,
    work,
    work_until_taken,
)
from winecellar.demo.payments_api import PaymentServer
from winecellar.demo.payments_script import PaymentScript
from winecellar.purchases import paying, services
from winecellar.purchases.events import CHARGE_PURCHASE
from winecellar.purchases.facts import Charge
from winecellar.purchases.models import Entry, Money, Purchase, PurchaseMail, StockItem
from winecellar.purchases.rules import Event, State

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _quick(settings: Any) -> None:
    settings.PAYMENT_TIMEOUT = timedelta(seconds=0.5)


def kinds(provider: PaymentServer) -> list[str]:
    return [kind for kind, _ in provider.requests]


def test_a_purchase_is_reserved_charged_and_told_of_in_this_order(provider: PaymentServer) -> None:
    item = stock(12)
    purchase = buy(buyer(provider), item, 2)
    item.refresh_from_db()
    assert (item.on_hand, item.reserved, state_of(purchase)) == (12, 2, State.CHARGING)
    assert not provider.requests, "nobody is asked while somebody's request waits"
    work()
    assert state_of(purchase) is State.COMPLETED
    assert kinds(provider) == ["open", "confirm"]
    assert {message.to[0]: message.subject for message in mail.outbox} == {
        "alice@winecellar.example": "You bought 2 bottles of Ch. Montrose 2016: $308.00",
        "orders@merchant.example": "Sold: 2 bottles of Ch. Montrose 2016, $308.00",
    }
    (charge,) = Money.objects.all()
    assert (charge.kind, charge.amount, charge.currency) == ("charge", purchase.amount, "USD")
    assert charge.fee == Decimal("9.23"), "2.9 % and 30 cents, as the provider says"
    check_books(provider, bottles={item.pk: 12})
    asked, *mails = LoggedMessage.objects.order_by("id")
    assert [each.attributes.get("caused_by") for each in mails] == [asked.event_id] * 2, "its journey goes on to them"


def test_a_declined_card_gives_the_bottles_back_and_tells_nobody(provider: PaymentServer) -> None:
    item = stock(1)
    purchase = buy(buyer(provider, declines="insufficient_funds"), item)
    work()
    purchase.refresh_from_db()
    assert (purchase.state, purchase.reason) == (State.RELEASED, "There is not enough money on the card.")
    assert not mail.outbox
    check_books(provider, bottles={item.pk: 1})


@pytest.mark.parametrize(
    "lost", ["hang:1", "taken-hang:1", "reset", "taken-reset", "500", "taken-error", "503:1", "429:1"]
)
@pytest.mark.parametrize("request_kind", ["open", "confirm", "look"])
def test_an_answer_that_is_lost_is_looked_up_and_never_charged_again(
    provider: PaymentServer, lost: str, request_kind: str
) -> None:
    item = stock(12)
    first = "confirm: taken-reset; " if request_kind == "look" else ""
    provider.script = PaymentScript(f"{first}{request_kind}: {lost}")
    purchase = buy(buyer(provider), item)
    work()
    assert state_of(purchase) in (State.CHARGING, State.ASKING)
    work(waits=True)
    assert state_of(purchase) is State.COMPLETED
    assert Entry.objects.filter(purchase=purchase, kind=Entry.Kind.LOST).exists(), "the log says that no answer came"
    assert not DeadLetter.objects.exists()
    check_books(provider, bottles={item.pk: 12})


def test_a_500_that_is_stored_under_its_key_is_not_asked_for_ever(provider: PaymentServer) -> None:
    """Stripe says the same again for a day. The intent says that nothing happened, so the next key is tried."""
    item = stock(12)
    provider.script = PaymentScript("confirm: 500*1")
    purchase = buy(buyer(provider), item)
    work(waits=True)
    assert state_of(purchase) is State.COMPLETED
    keys = [key for kind, key in provider.requests if kind == "confirm"]
    assert keys == [f"{purchase.reference}-charge"] * 2 + [f"{purchase.reference}-charge-2"]
    check_books(provider, bottles={item.pk: 12})


def test_a_reservation_that_runs_out_while_nobody_answers_gives_its_bottles_to_others(provider: PaymentServer) -> None:
    item = stock(1)
    provider.script = PaymentScript("confirm: reset")
    slow = buy(buyer(provider), item)
    work()
    later(slow, minutes=1)
    assert upkeep_now()[Event.TIME_UP] == 1
    assert state_of(slow) is State.LAPSED
    quick = buy(buyer(provider, "bob"), item)
    work(waits=True)
    assert (state_of(slow), state_of(quick)) == (State.RELEASED, State.COMPLETED)
    (of_slow,) = [i for i in provider.bank.intents.values() if i["metadata"]["purchase"] == slow.reference]
    assert of_slow["status"] == "canceled", "it can never be charged any more"
    check_books(provider, bottles={item.pk: 1})


def test_a_worker_that_wakes_up_after_the_purchase_was_called_off_charges_nothing(provider: PaymentServer) -> None:
    """It was paused before its first request; meanwhile the reservation ran out and the bottles went to others."""
    item = stock(1)
    purchase = buy(buyer(provider), item)
    (paused,) = paying.prepare([as_message(purchase, CHARGE_PURCHASE)])
    assert paused is not None
    later(purchase, minutes=1)
    upkeep_now()
    work(waits=True)
    assert state_of(purchase) is State.RELEASED
    seen = paying.perform(paused)
    assert seen is not None
    assert (seen.charge, seen.taken) == (Charge.CANCELLED, 0)
    check_books(provider, bottles={item.pk: 1})


def as_message(purchase: Purchase, name: str) -> Message:
    return Message(1, 1, "evt_1", name, "", f'{{"purchase_id": {purchase.pk}}}', None, "2026-03-14T09:12:04Z", 1)


def test_a_charge_that_was_pending_and_is_declined_in_the_end_gives_the_bottles_back(provider: PaymentServer) -> None:
    item = stock(1)
    provider.script = PaymentScript("confirm: pending")
    purchase = buy(buyer(provider), item)
    work()
    assert state_of(purchase) is State.ASKING
    (intent_id,) = provider.bank.intents
    provider.bank.fail(intent_id, "insufficient_funds")
    work(waits=True)
    purchase.refresh_from_db()
    assert (purchase.state, purchase.reason) == (State.RELEASED, "There is not enough money on the card.")
    check_books(provider, bottles={item.pk: 1})


@pytest.mark.parametrize("still_there", [True, False])
def test_a_charge_that_turns_out_well_too_late_is_sold_if_the_bottles_are_there_and_refunded_if_not(
    provider: PaymentServer, still_there: bool
) -> None:
    item = stock(2)
    provider.script = PaymentScript("confirm: taken-reset")
    purchase = buy(buyer(provider), item, 2)
    work_until_taken(provider, purchase)
    later(purchase, minutes=1)
    upkeep_now()
    assert StockItem.objects.get().reserved == 0
    if not still_there:
        buy(buyer(provider, "bob"), item, 1)
    work(waits=True)
    assert state_of(purchase) is (State.COMPLETED if still_there else State.REFUNDED)
    if not still_there:
        subjects = [message.subject for message in mail.outbox if message.to == ["alice@winecellar.example"]]
        assert subjects == ["Refunded: $308.00 for 2 bottles of Ch. Montrose 2016"]
        assert "5 to 10 business days" in mail.outbox[-1].body or "5 to 10 business days" in str(
            [m.body for m in mail.outbox]
        )
    check_books(provider, bottles={item.pk: 2})


@pytest.mark.parametrize("lost", ["hang:1", "taken-hang:1", "reset", "taken-reset", "500", "taken-error", "pending"])
def test_a_refund_is_made_once_whatever_becomes_of_the_answers(provider: PaymentServer, lost: str) -> None:
    item = stock(1)
    provider.script = PaymentScript(f"confirm: taken-reset; refund: {lost}")
    purchase = buy(buyer(provider), item)
    work_until_taken(provider, purchase)
    services.intervene(
        purchase_id=purchase.pk, event=Event.COMPENSATE, by="1", note="the buyer asked", now=timezone.now()
    )
    if lost == "pending":
        for _ in range(3):
            at_once()
            work()
        (refund,) = provider.bank.refunds.values()
        assert state_of(purchase) is State.REFUNDING
        provider.bank.end_refund(refund["id"], "succeeded")
    work(waits=True)
    assert state_of(purchase) is State.REFUNDED
    assert len(provider.bank.refunds) == 1
    check_books(provider, bottles={item.pk: 1})


@pytest.mark.parametrize("then", ["ok", "reset", "taken-reset", "500", "taken-error"])
def test_a_refund_that_fails_at_the_bank_comes_before_a_person_who_has_it_tried_again(
    provider: PaymentServer, then: str
) -> None:
    """Whatever becomes of the second one's answer: the first one's end is not taken for its."""
    item = stock(1)
    provider.script = PaymentScript(f"confirm: taken-reset; refund: refund-fails, {then}")
    purchase = buy(buyer(provider), item)
    work_until_taken(provider, purchase)
    services.intervene(purchase_id=purchase.pk, event=Event.COMPENSATE, by="1", note="n", now=timezone.now())
    work(waits=True)
    assert state_of(purchase) is State.REFUND_UNCLEAR
    services.intervene(purchase_id=purchase.pk, event=Event.RESUME, by="1", note="the bank said so", now=timezone.now())
    work(waits=True)
    assert state_of(purchase) is State.REFUNDED
    assert [refund["status"] for refund in provider.bank.refunds.values()] == ["failed", "succeeded"]
    check_books(provider, bottles={item.pk: 1})


def test_what_nobody_can_find_out_for_a_day_comes_before_a_person(provider: PaymentServer) -> None:
    item = stock(1)
    provider.script = PaymentScript("confirm: taken-reset; look: 503*60")
    purchase = buy(buyer(provider), item)
    work()
    later(purchase, minutes=1)
    upkeep_now()
    at_once()
    work()
    assert state_of(purchase) is State.LAPSED
    assert not upkeep_now()[Event.PATIENCE_OVER], "not before its time"
    later(purchase, hours=25)
    assert upkeep_now()[Event.PATIENCE_OVER] == 1
    assert state_of(purchase) is State.CHARGE_UNCLEAR
    at_once()
    work(waits=True)
    assert state_of(purchase) is State.CHARGE_UNCLEAR, "a command that is left over decides nothing"
    provider.script = PaymentScript()
    services.intervene(purchase_id=purchase.pk, event=Event.COMPENSATE, by="1", note="n", now=timezone.now())
    work(waits=True)
    assert state_of(purchase) is State.REFUNDED
    check_books(provider, bottles={item.pk: 1})


def test_a_provider_that_is_away_stops_being_asked_and_nothing_is_lost(provider: PaymentServer) -> None:
    """The breaker: of many purchases a few are tried, and all go through once it is back, charged no receive."""
    item = stock(40)
    provider.script = PaymentScript("open: 503*8")
    purchases = [buy(buyer(provider, f"p{n}"), item) for n in range(20)]
    work()
    work()
    assert len(provider.requests) < 20, "it is not asked for each"
    assert max(Delivery.objects.values_list("receive_count", flat=True)) <= 2
    work(waits=True)
    assert {state_of(purchase) for purchase in purchases} == {State.COMPLETED}
    check_books(provider, bottles={item.pk: 40})


def test_no_lock_and_no_transaction_is_held_while_the_provider_is_asked(
    provider: PaymentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import connections

    from winecellar.demo.payments_bank import Bank

    item = stock(12)
    purchase = buy(buyer(provider), item)
    seen: list[list[Any]] = []
    confirm = Bank.confirm

    def asks(bank: Bank, *given: Any, **more: Any) -> Any:
        other = connections["default"].copy()
        try:
            with other.cursor() as cursor:
                cursor.execute("SET lock_timeout = '200ms'")
                cursor.execute("SELECT id FROM purchases_purchase WHERE id = %s FOR UPDATE", [purchase.pk])
                cursor.execute("SELECT id FROM purchases_stockitem WHERE id = %s FOR UPDATE", [item.pk])
                cursor.execute(
                    "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%%'"
                )
                seen.append(cursor.fetchall())
        finally:
            other.close()
        return confirm(bank, *given, **more)

    monkeypatch.setattr(Bank, "confirm", asks)
    work()
    assert seen == [[]]
    assert state_of(purchase) is State.COMPLETED


def test_an_address_that_takes_no_mail_does_not_unmake_the_purchase(provider: PaymentServer, settings: Any) -> None:
    item = stock(1)
    purchase = buy(buyer(provider), item)
    merchant = item.merchant
    merchant.seller.delete()
    work()
    assert state_of(purchase) is State.COMPLETED
    assert dict(PurchaseMail.objects.values_list("kind", "state")) == {"bought": "sent", "sold": "unwanted"}


def test_the_log_and_the_money_cannot_be_rewritten(provider: PaymentServer) -> None:
    from django.db import DatabaseError, transaction

    buy(buyer(provider), stock(1))
    work()
    for change in (
        lambda: Entry.objects.update(says="x"),
        lambda: Money.objects.all().delete(),
        lambda: Money.objects.update(amount=1),
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()


def test_a_buyer_who_leaves_in_the_middle_leaves_books_that_balance_and_no_name(provider: PaymentServer) -> None:
    from winecellar.accounts.services import erase

    item = stock(1)
    user = buyer(provider)
    purchase = buy(user, item)
    erase(user=user)
    work(waits=True)
    purchase = Purchase.objects.get()
    assert purchase.buyer is None
    assert state_of(purchase) is State.COMPLETED
    assert [message.to for message in mail.outbox] == [["orders@merchant.example"]]


def test_a_request_whose_sender_dies_in_its_middle_is_none_and_its_key_is_still_free(provider: PaymentServer) -> None:
    """Of the simulated provider: half a body that counted under its key would refuse the whole one for ever."""
    item = stock(1)
    purchase = buy(buyer(provider), item)
    head = f"POST /v1/payment_intents HTTP/1.1\r\nHost: x\r\nIdempotency-Key: {purchase.reference}-open\r\n"
    with socket.create_connection(("127.0.0.1", provider.port), timeout=10) as dying:
        dying.sendall(f"{head}Authorization: Bearer sk_x\r\nContent-Length: 400\r\n\r\namount=154".encode())
        dying.shutdown(socket.SHUT_WR)
        assert dying.recv(1) == b""
    work()
    assert state_of(purchase) is State.COMPLETED
