"""The canonical forms say that a wine is offered no longer, and whether a price has tax in it."""

import itertools
import json
from decimal import Decimal

import pytest

from pricing.feeds.formats import CLOUDEVENT, NDJSON
from pricing.models import HeldPrice, Merchant, Offer
from tests.feeds.conftest import observation, refusal
from tests.pricing.observed import published

pytestmark = pytest.mark.django_db

T1, T2, T3 = (f"2026-03-14T0{hour}:00:00Z" for hour in (1, 2, 3))


def withdrawal(at=T2, **fields):
    return {"wine_id": "wn_4417", "withdrawn": True, "occurred_at": at, **fields}


def results(response):
    assert response.status_code == 202, response.content
    return [{name: value for name, value in each.items() if name != "event_id"} for each in response.json()["results"]]


def types():
    return [message["type"] for message in published()]


def test_a_withdrawn_wine_is_offered_no_longer_and_the_event_says_since_when(feed, wine):
    feed.post(observation(occurred_at=T1))
    response = feed.post(withdrawal())
    assert results(response) == [{"wine_id": "wn_4417", "applied": True, "withdrawn": True}]
    assert Offer.objects.get().withdrawn_at.isoformat() == "2026-03-14T02:00:00+00:00"
    event = published()[-1]
    assert response.json()["event_ids"] == [event["event_id"]]
    assert (event["type"], event["body"]["occurred_at"]) == ("wine.offer_withdrawn", "2026-03-14T02:00:00Z")
    assert event["body"]["price_usd"] == Decimal("189.00")


def test_said_twice_it_is_told_once(feed, wine):
    feed.post(observation(occurred_at=T1))
    feed.post(withdrawal(T2))
    assert results(feed.post(withdrawal(T3))) == [{"wine_id": "wn_4417", "applied": False, "reason": "unchanged"}]
    assert types() == ["wine.price_changed", "wine.offer_withdrawn"]
    assert results(feed.post(observation("150.00", occurred_at=T2)))[0]["reason"] == "stale"  # before the last word


def test_sent_again_under_its_id_it_gets_the_same_answer(feed, wine):
    feed.post(observation(occurred_at=T1))
    first, second = (feed.post(withdrawal(delivery_id="d-1")).json() for _ in range(2))
    assert second == {**first, "duplicate": True, "request_id": second["request_id"]}
    assert types() == ["wine.price_changed", "wine.offer_withdrawn"]


def test_a_withdrawal_before_a_known_price_is_stale_and_published_as_nothing(feed, wine):
    feed.post(observation(occurred_at=T3))
    assert results(feed.post(withdrawal(T2))) == [{"wine_id": "wn_4417", "applied": False, "reason": "stale"}]
    assert Offer.objects.get().withdrawn_at is None
    assert types() == ["wine.price_changed"]


def test_what_was_never_priced_cannot_be_withdrawn(feed, wine):
    assert results(feed.post(withdrawal())) == [{"wine_id": "wn_4417", "applied": False, "reason": "not offered"}]
    assert published() == []
    assert not Offer.objects.exists()


def test_the_next_later_price_brings_it_back(feed, wine):
    feed.post(observation(occurred_at=T1))
    feed.post(withdrawal(T2))
    assert results(feed.post(observation(occurred_at=T3))) == [
        {"wine_id": "wn_4417", "applied": True, "returned": True}
    ]
    assert types() == ["wine.price_changed", "wine.offer_withdrawn", "wine.offer_returned"]
    assert Offer.objects.get().withdrawn_at is None


SAID = [observation("189.00", occurred_at=T1), withdrawal(T2), observation("150.00", occurred_at=T3)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_in_whatever_order_they_arrive_the_latest_word_stands(feed, wine, order):
    for index in order:
        results(feed.post(SAID[index]))
    offer = Offer.objects.get()
    assert (offer.price_usd, offer.withdrawn_at) == (Decimal("150.00"), None)


def test_in_one_request_they_count_in_the_order_of_time(feed, wine):
    response = feed.post({"observations": [withdrawal(T3), observation(occurred_at=T1)]})
    assert [each["applied"] for each in results(response)] == [True, True]
    assert Offer.objects.get().withdrawn_at is not None
    assert types() == ["wine.price_changed", "wine.offer_withdrawn"]


def test_the_other_forms_say_it_too(feed, wine):
    feed.post(observation(occurred_at=T1))
    line = json.dumps(withdrawal(T2)).encode()
    assert results(feed.post(line, content_type=NDJSON))[0]["withdrawn"] is True
    event = {"specversion": "1.0", "id": "e", "source": "s", "type": "gone", "time": T3}
    data = {"wine_id": "wn_4417", "withdrawn": True}
    event_of = json.dumps({**event, "data": data}).encode()
    assert results(feed.post(event_of, content_type=CLOUDEVENT))[0]["reason"] == "unchanged"
    other = json.dumps({**event, "data": {**observation(), "occurred_at": T3}}).encode()
    assert refusal(feed.post(other, content_type=CLOUDEVENT))[:2] == (409, "id_conflict")  # a price is another thing


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (withdrawal(price="189.00"), "invalid_withdrawn", "price"),
        (withdrawal(withdrawn="true"), "invalid_withdrawn", "withdrawn"),
        (withdrawal(withdrawn=None), "invalid_withdrawn", "withdrawn"),
        (withdrawal(currency="EURO"), "invalid_currency", "currency"),
        (withdrawal(tax="some"), "invalid_tax", "tax"),
        ({"wine_id": "wn_4417", "withdrawn": True}, "invalid_time", "occurred_at"),
        ({"observations": [withdrawal()], "withdrawn": True}, "invalid_observations", "withdrawn"),
        (observation(tax=True), "invalid_tax", "tax"),
        (observation(tax="Included"), "invalid_tax", "tax"),
        (observation(price=..., withdrawn=False), "invalid_price", "price"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(feed, wine, body, code, field):
    assert refusal(feed.post(body)) == (422, code, field)


# --- Tax ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tax", ["included", "excluded"])
def test_what_a_price_says_of_tax_stands_with_the_offer(feed, wine, tax):
    feed.post(observation(tax=tax))
    assert Offer.objects.get().tax == tax


def test_where_a_price_says_nothing_the_merchants_word_for_all_of_them_counts(feed, wine):
    Merchant.objects.update(tax="excluded")
    feed.post(observation(occurred_at=T1))
    assert Offer.objects.get().tax == "excluded"
    feed.post(observation("150.00", occurred_at=T2, tax="included"))
    assert Offer.objects.get().tax == "included"


def test_the_same_price_with_another_word_of_tax_is_no_event(feed, wine):
    feed.post(observation(occurred_at=T1))
    assert results(feed.post(observation(occurred_at=T2, tax="excluded")))[0]["reason"] == "unchanged"
    assert Offer.objects.get().tax == "excluded"
    assert results(feed.post(observation(occurred_at=T3)))[0]["reason"] == "unchanged"
    assert Offer.objects.get().tax == "excluded"  # nothing was said against it
    assert types() == ["wine.price_changed"]


def test_a_held_price_keeps_its_word_of_tax(feed, wine):
    feed.post(observation("10.00", occurred_at=T1))
    feed.post(observation("999.00", occurred_at=T2, tax="included"))
    assert HeldPrice.objects.get().tax == "included"
