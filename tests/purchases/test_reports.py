"""The provider's reports: believed only with the secret, taken once, in any order; each has the payment looked up."""

import hashlib
import hmac
import itertools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from jobs.models import LoggedMessage
from tests.purchases.cast import buy, buyer, check_books, later, state_of, stock, upkeep_now, work
from tests.purchases.conftest import SECRET
from winecellar.demo.payments_api import PaymentServer, signed
from winecellar.demo.payments_script import PaymentScript
from winecellar.purchases import services
from winecellar.purchases.models import ProviderReport
from winecellar.purchases.rules import Event, State

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/payments/reports"


def send(event: Any, *, secret: str = SECRET, at: int | None = None) -> Any:
    body, signature = signed(event, secret, at)
    return Client().post(ADDRESS, body, content_type="application/json", headers={"Stripe-Signature": signature})


def checks() -> int:
    return LoggedMessage.objects.filter(type="check_payment").count()


def test_a_report_is_taken_once_however_often_it_comes(provider: PaymentServer) -> None:
    buy(buyer(provider), stock(1))
    work()
    (event,) = provider.bank.events
    assert event["type"] == "payment_intent.succeeded"

    def once(_: int) -> int:
        try:
            return int(send(event).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(once, range(32))) == {200}
    assert (ProviderReport.objects.count(), checks()) == (1, 1)


def test_a_report_ends_a_charge_that_was_pending(provider: PaymentServer) -> None:
    item = stock(1)
    provider.script = PaymentScript("confirm: pending")
    purchase = buy(buyer(provider), item)
    work()
    assert state_of(purchase) is State.ASKING
    (intent,) = provider.bank.intents
    provider.bank.succeed(intent)
    assert send(provider.bank.events[-1]).status_code == 200
    work()
    assert state_of(purchase) is State.COMPLETED
    check_books(provider, bottles={item.pk: 1})


def test_reports_come_to_the_same_end_in_every_order(provider: PaymentServer) -> None:
    """Charged, refunded, the refund sent back by the bank: what a report says is not believed, what is looked up is."""
    for order in itertools.permutations(range(3)):
        item = stock(1, number=f"9{''.join(map(str, order))}")
        provider.script = PaymentScript("confirm: taken-reset")
        purchase = buy(buyer(provider, f"p{''.join(map(str, order))}"), item)
        seen = len(provider.bank.events)
        work()
        services.intervene(purchase_id=purchase.pk, event=Event.COMPENSATE, by="1", note="n", now=timezone.now())
        work(waits=True)
        assert state_of(purchase) is State.REFUNDED
        provider.bank.end_refund(list(provider.bank.refunds)[-1], "failed")
        reports = provider.bank.events[seen:]
        assert [report["type"] for report in reports] == [
            "payment_intent.succeeded",
            "refund.created",
            "refund.failed",
        ]
        for number in order:
            assert send(reports[number]).status_code == 200
            work(waits=True)
        assert state_of(purchase) is State.REFUND_UNCLEAR, order
        charged = {row.kind: row.amount for row in purchase.money.all()}
        assert set(charged) == {"charge", "refund", "returned"}


def test_a_report_of_a_late_charge_reaches_a_purchase_whose_opening_was_never_answered(provider: PaymentServer) -> None:
    provider.script = PaymentScript("confirm: taken-reset; look: 503*40")
    purchase = buy(buyer(provider), stock(1))
    work()
    later(purchase, hours=25)
    upkeep_now()
    later(purchase, hours=25)
    upkeep_now()
    assert state_of(purchase) is State.CHARGE_UNCLEAR
    purchase.refresh_from_db()
    assert purchase.intent_id == ""
    provider.script = PaymentScript()
    assert send(provider.bank.events[0]).status_code == 200
    work(waits=True)
    assert state_of(purchase) is State.REFUNDED


def test_what_is_not_signed_by_our_provider_changes_nothing(provider: PaymentServer) -> None:
    buy(buyer(provider), stock(1))
    work()
    (event,) = provider.bank.events
    body, signature = signed(event, SECRET)
    post = lambda body, **headers: Client().post(ADDRESS, body, content_type="application/json", headers=headers)  # noqa: E731
    refused = [
        send(event, secret="whsec_another"),
        send(event, at=int(time.time()) - 301),
        post(body),
        post(body, **{"Stripe-Signature": ""}),
        post(body, **{"Stripe-Signature": "t=1,v1=é"}),
        post(body, **{"Stripe-Signature": f"t={'9' * 5000},v1=00"}),
        post(body + b" ", **{"Stripe-Signature": signature}),
        post(b"\xff", **{"Stripe-Signature": signature}),
    ]
    assert [answer.status_code for answer in refused] == [401] * len(refused)
    assert not ProviderReport.objects.exists()
    assert Client().get(ADDRESS).status_code == 405


NO_REPORTS = [
    b"",
    b"[]",
    b"{",
    b"null",
    b"{}",
    json.dumps({"id": "evt_\x00", "type": "payment_intent.succeeded", "data": {"object": {}}}).encode(),
    json.dumps({"id": "evt_1", "type": "x\n", "data": {"object": {}}}).encode(),
    json.dumps({"id": 1, "type": "x", "data": {"object": {}}}).encode(),
    json.dumps({"id": "evt_1", "type": "x", "data": {"object": [1]}}).encode(),
    b"[" * 100_000,
]


def test_what_is_signed_and_no_report_is_a_400(provider: PaymentServer) -> None:
    for body in NO_REPORTS:
        at = int(time.time())
        mac = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {"Stripe-Signature": f"t={at},v1={mac}"}
        answer = Client().post(ADDRESS, body, content_type="application/json", headers=headers)
        assert answer.status_code == 400, body[:80]
    assert not ProviderReport.objects.exists()


def test_what_is_too_long_is_not_read_and_without_a_secret_there_is_no_such_address(
    provider: PaymentServer, settings: Any
) -> None:
    assert Client().post(ADDRESS, b"x" * 200_001, content_type="application/json").status_code == 413
    settings.PAYMENTS_WEBHOOK_SECRET = ""
    assert send({"id": "evt_1"}).status_code == 404


def test_a_report_about_nothing_of_ours_is_taken_and_left(provider: PaymentServer) -> None:
    for thing in ({"object": "payment_intent", "id": "pi_other"}, {"object": "customer", "id": "cus_1"}, {}):
        assert send({"id": f"evt_{len(thing)}", "type": "x.y", "data": {"object": thing}}).status_code == 200
    assert checks() == 0
