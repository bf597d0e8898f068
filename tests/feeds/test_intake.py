"""From a request to what is committed: the answers of good requests."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from pricing.models import FeedAnswer, HeldPrice, Offer, RawBody, Wine
from tests import cast
from tests.cast import NOW
from tests.feeds.conftest import observation
from tests.pricing.observed import make_offer, published

pytestmark = pytest.mark.django_db(transaction=True)
LATER = (NOW + timedelta(hours=1)).isoformat()


def accepted(response):
    answer = json.loads(response.content)
    assert response.status_code == 202, answer
    assert answer.pop("request_id") == response["X-Request-ID"]
    return answer


def test_one_observation_is_answered_with_its_event(feed, wine):
    answer = accepted(feed.post(observation()))
    [message] = published()
    assert answer == {
        "accepted": 1,
        "duplicate": False,
        "results": [{"wine_id": "wn_4417", "applied": True, "event_id": message["event_id"]}],
        "event_ids": [message["event_id"]],
        "ignored_fields": 0,
    }
    assert message["event_id"].startswith("evt_")
    assert Offer.objects.get().price_usd == Decimal("189.00")
    assert not FeedAnswer.objects.exists()


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ('"154"', "154.00"),
        ('"154.5"', "154.50"),
        ("154.00", "154.00"),
        ("12.1", "12.10"),
        ("0.01", "0.01"),
        ('"0.01"', "0.01"),
        ("99999999.99", "99999999.99"),
        ("1", "1.00"),
    ],
)
def test_row_66_a_price_is_text_or_a_number_and_kept_to_the_cent(feed, wine, text, price):
    body = json.dumps(observation("PRICE")).replace('"PRICE"', text).encode()
    accepted(feed.post(body))
    assert Offer.objects.get().price_usd == Decimal(price)
    assert published()[0]["body"]["new_price_usd"] == Decimal(price)


def test_the_time_is_the_merchants_in_whatever_zone_it_is_written(feed, wine):
    accepted(feed.post(observation(occurred_at="2026-03-14T04:12:04.25-05:00")))
    assert Offer.objects.get().occurred_at == datetime(2026, 3, 14, 9, 12, 4, 250_000, tzinfo=UTC)


def test_an_unchanged_price_is_no_event(feed, merchant, wine):
    make_offer(merchant, wine, "189.00")
    answer = accepted(feed.post(observation("189.00", occurred_at=LATER)))
    assert answer["results"] == [{"wine_id": "wn_4417", "applied": False, "reason": "unchanged"}]
    assert answer["event_ids"] == []


@pytest.mark.parametrize("price", ["1.88", "18900.01", "189000.00"])
def test_row_73_a_price_too_far_from_the_last_is_held(feed, merchant, wine, price):
    make_offer(merchant, wine, "189.00")
    answer = accepted(feed.post(observation(price, occurred_at=LATER)))
    assert answer["results"] == [{"wine_id": "wn_4417", "applied": False, "reason": "held", "held": "suspect"}]
    assert answer["event_ids"] == []
    assert HeldPrice.objects.get().price_usd == Decimal(price)


def test_row_87_a_late_price_is_stale_and_history(feed, merchant, wine):
    make_offer(merchant, wine, "189.00", NOW + timedelta(hours=1))
    answer = accepted(feed.post(observation("160.00")))
    [message] = published()
    assert message["type"] == "wine.late_price_observed"
    assert answer["results"] == [
        {"wine_id": "wn_4417", "applied": False, "reason": "stale", "event_id": message["event_id"]}
    ]
    assert answer["event_ids"] == [message["event_id"]]
    assert Offer.objects.get().price_usd == Decimal("189.00")


def test_rows_96_and_97_unknown_fields_are_ignored_counted_and_never_applied(feed, wine):
    extra = {"is_admin": True, "id": 7, "status": "sold", "event_id": "evt_mine", "old_price_usd": 1, "note": [{}]}
    assert accepted(feed.post(observation(**extra)))["ignored_fields"] == 6
    assert published()[0]["event_id"] != "evt_mine"
    assert published()[0]["body"]["old_price_usd"] is None
    items = [observation(a=1), observation(b=1, c=2), observation()]
    assert accepted(feed.post({"observations": items, "d": 1}))["ignored_fields"] == 4


def test_row_101_one_wine_twice_out_of_order_is_taken_in_the_order_of_time(feed, wine):
    items = [observation("150.00", occurred_at=LATER), observation("160.00")]
    answer = accepted(feed.post({"observations": items}))
    assert [result["applied"] for result in answer["results"]] == [True, True]
    assert Offer.objects.get().price_usd == Decimal("150.00")
    log = published()
    assert [message["body"]["new_price_usd"] for message in log] == [Decimal("160.00"), Decimal("150.00")]
    assert [result["event_id"] for result in answer["results"]] == [log[1]["event_id"], log[0]["event_id"]]
    assert answer["event_ids"] == [log[1]["event_id"], log[0]["event_id"]]


def test_a_batch_of_a_thousand_costs_a_handful_of_statements(feed, merchant):
    Wine.objects.bulk_create(
        Wine(id=f"wn_{n}", name="Ch. Montrose", producer="Montrose", colour="red", country="France")
        for n in range(1000)
    )
    body = {"delivery_id": "nightly-1", "observations": [observation(wine_id=f"wn_{n}") for n in range(1000)]}
    with CaptureQueriesContext(connection) as queries:
        answer = accepted(feed.post(body))
    assert answer["accepted"] == len(answer["event_ids"]) == len(published()) == 1000
    statements = [query["sql"] for query in queries if query["sql"] not in ("BEGIN", "COMMIT")]
    # key, rate, reserve the answer (and lock_timeout), keep the body, lock wines, read offers, write offers, publish,
    # answer
    assert len(statements) == 8, [sql[:90] for sql in statements]


def test_a_repeated_request_leaves_nothing_of_what_was_asked_ahead(feed, wine):
    feed.post(observation(), Idempotency_Key="d-1")
    before = Offer.objects.values().get(), RawBody.objects.values("id").get()
    assert accepted(feed.post(observation(), Idempotency_Key="d-1"))["duplicate"] is True
    assert (Offer.objects.values().get(), RawBody.objects.values("id").get()) == before


def test_a_repeated_request_gets_its_answer_after_its_wine_was_retired(feed, wine):
    first = accepted(feed.post(observation(), Idempotency_Key="d-1"))
    Wine.objects.update(retired_at=timezone.now())
    assert accepted(feed.post(observation(), Idempotency_Key="d-1"))["event_ids"] == first["event_ids"]


def test_a_message_carries_request_delivery_and_trace_in_its_attributes(feed, wine):
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    response = feed.post(observation(delivery_id="d-1"), Idempotency_Key="i-1", traceparent=traceparent)
    assert published()[0]["attributes"] == {
        "request_id": response["X-Request-ID"],
        "merchant_delivery_id": "d-1",
        "traceparent": traceparent,
        "raw_body": str(RawBody.objects.get().pk),
    }


def test_without_a_delivery_id_the_idempotency_key_is_the_merchants_id(feed, wine):
    feed.post(observation(), Idempotency_Key="i-1")
    assert published()[0]["attributes"]["merchant_delivery_id"] == "i-1"


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n",
        "x" * 5000,
    ],
)
def test_a_malformed_traceparent_is_left_out(feed, wine, traceparent):
    feed.post(observation(), traceparent=traceparent)
    assert set(published()[0]["attributes"]) == {"request_id", "raw_body"}


def test_202_is_said_only_after_the_commit(feed, wine, monkeypatch):
    """The test's own connection sees the rows at the moment the answer is rendered, outside any transaction."""
    from pricing.feeds import edge

    class Watching(edge.JsonResponse):
        def __init__(self, *args, **options):
            assert not connection.in_atomic_block
            assert len(published()) == 1
            super().__init__(*args, **options)

    monkeypatch.setattr(edge, "JsonResponse", Watching)
    accepted(feed.post(observation()))


def test_names_are_those_of_our_catalogue(feed):
    cast.wine(name="Krug Grande Cuvée", vintage=None)
    accepted(feed.post(observation(wine_name="<b>mine</b>")))
    assert published()[0]["body"]["wine_name"] == "Krug Grande Cuvée NV"
