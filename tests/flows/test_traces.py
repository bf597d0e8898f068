"""One request's trace, from the merchant's header to the mail: links where nobody waited, edges where somebody did."""

from typing import Any

import pytest
import structlog
from django.core import mail
from django.test import Client
from django.utils import timezone
from structlog.testing import capture_logs

from jobs import tracing
from jobs.models import LoggedMessage
from jobs.worker import drain
from pricing import holds
from pricing.models import HeldPrice
from tests.cast import alert, wine
from tests.flows.test_price_to_mail import Shop
from tests.tracing import as_text, links, traced

pytestmark = pytest.mark.django_db(transaction=True)
THEIRS = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CONSUMERS = ("price-history", "alert-matching", "search-index", "analytics-rollup")


def ask(shop: Shop, price: str = "154.00", headers: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    said = {"wine_id": "wn_4417", "price": price, "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z", **body}
    answer = Client().post(
        "/feeds/v1/price-changes",
        said,
        "application/json",
        headers={"Authorization": f"Bearer {shop.key}", **(headers or {})},
    )
    assert answer.status_code == 202, answer.content
    return dict(answer.json())


def test_a_merchants_request_four_consumers_and_a_mail() -> None:
    mail.outbox = []
    wine()
    alert("160.00")
    shop = Shop()
    with traced() as spans:
        (event_id,) = ask(shop, headers={"traceparent": THEIRS, "tracestate": "shop=1"})["event_ids"]
        drain()
    assert len(mail.outbox) == 1
    request, sent = spans.one("POST /feeds/v1/price-changes"), spans.one("send wine.price_changed")
    assert request.parent is not None
    assert (f"{request.parent.span_id:016x}", request.attributes["http.response.status_code"]) == (  # type: ignore[index]
        "00f067aa0ba902b7",
        202,
    ), "the merchant waits for us, so it is our span's parent"
    assert sent.parent is not None
    assert sent.parent.span_id == request.get_span_context().span_id
    event = LoggedMessage.objects.get(event_id=event_id)
    assert event.attributes["traceparent"] == as_text(sent)
    assert event.attributes["tracestate"] == "shop=1"
    assert THEIRS.split("-")[1] in as_text(sent)
    for consumer in CONSUMERS:
        span = spans.one(f"process {consumer}")
        assert (span.parent, links(span)) == (None, [as_text(sent)]), consumer
    matching, command = spans.one("process alert-matching"), spans.one("send send_alert_email")
    assert command.parent is not None
    assert command.parent.span_id == matching.get_span_context().span_id
    delivery, handed = spans.one("process notification-delivery"), spans.one("hand over mail")
    assert links(delivery) == [as_text(command)]
    assert handed.parent is not None
    assert handed.parent.span_id == delivery.get_span_context().span_id
    told = repr([(span.name, span.attributes, span.events, span.status.description) for span in spans.all()])
    assert "alice" not in told
    assert shop.key not in told


def test_without_an_sdk_the_merchants_trace_goes_as_far_as_the_mails_command() -> None:
    wine()
    alert("160.00")
    ask(Shop(), headers={"traceparent": THEIRS})
    drain()
    said = LoggedMessage.objects.filter(type__in=["wine.price_changed", "send_alert_email"])
    assert [message.attributes["traceparent"] for message in said] == [THEIRS, THEIRS]


def test_a_price_that_is_held_and_released_later_still_belongs_to_the_request_that_brought_it() -> None:
    wine()
    shop = Shop()
    ask(shop, "154.00")
    with traced() as spans:
        ask(shop, "15400.00", headers={"traceparent": THEIRS}, occurred_at="2026-03-14T10:12:04Z")
        holds.release(held_id=HeldPrice.objects.get().pk, by="dana", now=timezone.now())
        drain(["price-history"])
    request = spans.one("POST /feeds/v1/price-changes")
    assert as_text(request) in [link for span in spans.named("process price-history") for link in links(span)]


def test_the_lines_that_a_request_logs_name_its_trace() -> None:
    wine()
    shop = Shop()
    with traced(), capture_logs([structlog.contextvars.merge_contextvars, tracing.add_ids]) as lines:
        ask(shop, headers={"traceparent": THEIRS})
    named = {line["event"]: line.get("trace_id") for line in lines}
    assert named["feed.accepted"] == named["request"] == THEIRS.split("-")[1]
