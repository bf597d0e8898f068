"""One price, from the merchant's HTTP request to the mail, through the real code on real Postgres."""

import json
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from alerts.models import Notification
from jobs.models import DeadLetter, Delivery, LoggedMessage, ProcessedMessage
from jobs.worker import drain
from pricing.keys import create_key
from pricing.models import Offer, PriceHistory
from tests.cast import alert, merchant, person, wine

pytestmark = pytest.mark.django_db(transaction=True)


class Shop:
    """A merchant with a real key, posting over the test client."""

    def __init__(self, number: str = "082", name: str = "Merchant X") -> None:
        self.key = create_key(merchant=merchant(number, name), note="", now=timezone.now())[1]

    def post(self, *observations: dict[str, Any], key: str | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"} | ({"Idempotency-Key": key} if key else {})
        body = {"observations": list(observations)}
        return Client().post("/feeds/v1/price-changes", json.dumps(body), "application/json", headers=headers)

    def ask(self, price: str, minute: int = 0, wine_id: str = "wn_4417", **extra: Any) -> Any:
        at = f"2026-03-14T09:{minute:02d}:04Z"
        answer = self.post({"wine_id": wine_id, "price": price, "currency": "USD", "occurred_at": at}, **extra)
        assert answer.status_code == 202, answer.content
        return answer.json()


@pytest.fixture(autouse=True)
def _empty_mailbox() -> None:
    mail.outbox = []


def test_a_price_becomes_history_an_alert_and_a_mail() -> None:
    wine()
    alert("160.00")
    shop = Shop()
    shop.ask("189.00")
    answer = shop.ask("154.00", minute=1)
    drain()
    assert [str(p) for p in PriceHistory.objects.order_by("id").values_list("price_usd", flat=True)] == [
        "189.00",
        "154.00",
    ]
    (sent,) = mail.outbox
    assert sent.subject == "Ch. Montrose 2016 is $154.00 at Merchant X, below your $160.00"
    (event_id,) = answer["event_ids"]
    consumers = ProcessedMessage.objects.filter(event_id=event_id).values_list("consumer_name", flat=True)
    assert set(consumers) == {"price-history", "alert-matching", "search-index", "analytics-rollup"}
    assert Notification.objects.get(event_id=event_id).state == "sent"
    assert not Delivery.objects.exists()


def test_the_event_on_the_wire_is_the_courses_with_its_digits_and_its_trace_in_the_attributes() -> None:
    wine()
    shop = Shop()
    shop.ask("189.00")
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    body = {"wine_id": "wn_4417", "price": "154.00", "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z"}
    answer = Client().post(
        "/feeds/v1/price-changes",
        json.dumps(body),
        "application/json",
        headers={"Authorization": f"Bearer {shop.key}", "traceparent": trace, "X-Request-ID": "abcdefgh-1"},
    )
    (event_id,) = answer.json()["event_ids"]
    message = LoggedMessage.objects.get(event_id=event_id)
    assert message.body == {
        "event_id": event_id,
        "type": "wine.price_changed",
        "occurred_at": "2026-03-14T09:12:04Z",
        "wine_id": "wn_4417",
        "wine_name": "Ch. Montrose 2016",
        "merchant_id": "mch_082",
        "old_price_usd": 189.00,
        "new_price_usd": 154.00,
        "currency": "USD",
    }
    assert message.attributes["traceparent"] == trace
    assert message.attributes["request_id"] == "abcdefgh-1"
    assert message.key == "wn_4417"


def test_a_merchants_retry_gets_the_same_answer_and_mails_nobody_twice() -> None:
    wine()
    alert("160.00")
    shop = Shop()
    first = shop.ask("154.00", key="delivery-1")
    drain()
    again = shop.ask("154.00", key="delivery-1")
    drain()
    assert again["duplicate"] is True
    assert again["event_ids"] == first["event_ids"]
    assert len(mail.outbox) == 1
    assert PriceHistory.objects.count() == 1


def test_the_same_price_again_is_no_event() -> None:
    wine()
    shop = Shop()
    shop.ask("154.00")
    answer = shop.ask("154.00", minute=5)
    assert answer["event_ids"] == []
    assert LoggedMessage.objects.count() == 1


def test_a_late_price_is_history_only() -> None:
    wine()
    alert("160.00")
    shop = Shop()
    shop.ask("189.00", minute=10)
    answer = shop.ask("150.00", minute=5)
    drain()
    assert answer["results"][0]["applied"] is False
    assert str(Offer.objects.get().price_usd) == "189.00"
    late = PriceHistory.objects.get(late=True)
    assert str(late.price_usd) == "150.00"
    assert not mail.outbox


def test_six_prices_in_every_merchants_order_end_in_the_same_current_price() -> None:
    """What arrives late never overwrites what is newer, whatever the order of arrival."""
    shop = Shop()
    prices = ["189.00", "154.00", "161.00", "150.00", "170.00", "165.00"]
    for number, order in enumerate([(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (3, 0, 5, 1, 4, 2), (2, 5, 0, 3, 1, 4)]):
        bottle = wine(f"{number}")
        for minute in order:
            shop.ask(prices[minute], minute=minute, wine_id=bottle.pk)
        drain()
        assert str(Offer.objects.get(wine=bottle).price_usd) == "165.00"
        by_time = PriceHistory.objects.filter(wine=bottle).order_by("observed_at").values_list("price_usd", flat=True)
        assert [str(p) for p in by_time] == prices


def test_an_alert_made_through_the_page_is_checked_and_told_once() -> None:
    wine()
    shop = Shop()
    shop.ask("154.00")
    drain()
    browser = Client()
    browser.force_login(person("bob"))
    browser.post("/wines/wn_4417", {"target": "160"})
    drain()
    (sent,) = mail.outbox
    assert sent.to == ["bob@winecellar.example"]
    assert not DeadLetter.objects.exists()


def test_a_batch_with_one_bad_item_writes_nothing() -> None:
    wine()
    shop = Shop()
    good = {"wine_id": "wn_4417", "price": "154.00", "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z"}
    answer = shop.post(good, {**good, "price": "0"})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "observations[1].price"
    assert not Offer.objects.exists()
    assert not LoggedMessage.objects.exists()
