"""Rows 17 and 89 to 91: a merchant's retry is safe."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction

from pricing import keys
from pricing.models import FeedAnswer, Offer
from tests import cast
from tests.cast import NOW
from tests.feeds.conftest import Feed, nothing_written, observation, refusal
from tests.pricing.observed import published
from tests.pricing.test_order import DEADLINE, until, waiting_for_a_lock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=["header", "body"])
def send(request, feed):
    """Post an observation under an id, given in the header or in the body."""

    def post(id_, price="189.00", by=feed, **fields):
        if request.param == "header":
            return by.post(observation(price, **fields), Idempotency_Key=id_)
        return by.post(observation(price, delivery_id=id_, **fields))

    return post


def without_request_id(response):
    return {name: value for name, value in response.json().items() if name != "request_id"}


def test_row_17_a_retry_gets_the_stored_answer_and_has_no_effect(send, wine):
    first, again = send("d-1"), send("d-1")
    assert (first.status_code, again.status_code) == (202, 202)
    assert without_request_id(again) == {**without_request_id(first), "duplicate": True}
    assert first.json()["duplicate"] is False
    assert again.json()["request_id"] == again["X-Request-ID"] != first["X-Request-ID"]
    assert len(published()) == 1
    assert FeedAnswer.objects.count() == 1


def test_a_retry_after_newer_prices_does_not_bring_the_old_one_back(send, wine):
    send("d-1", "189.00")
    send("d-2", "154.00", occurred_at=(NOW + timedelta(hours=1)).isoformat())
    assert send("d-1", "189.00").json()["results"][0]["applied"] is True  # as it was answered then
    assert Offer.objects.get().price_usd == 154
    assert len(published()) == 2


def test_row_90_the_same_id_with_another_body_is_a_409(send, wine):
    send("d-1", "189.00")
    assert refusal(send("d-1", "154.00")) == (409, "id_conflict", None)
    assert Offer.objects.get().price_usd == 189


def test_ids_belong_to_their_merchant(send, wine):
    _, other = keys.create_key(merchant=cast.merchant("083", "Merchant Y"), note="", now=NOW)
    assert send("d-1", "189.00").json()["duplicate"] is False
    theirs = send("d-1", "154.00", by=Feed(other)).json()
    assert theirs["duplicate"] is False
    again = send("d-1", "154.00", by=Feed(other)).json()
    assert (again["duplicate"], again["event_ids"]) == (True, theirs["event_ids"])
    assert len(published()) == 2


def test_a_refused_request_does_not_use_its_id_up(send, wine):
    assert send("d-1", wine_id="wn_1").status_code == 422
    assert nothing_written()
    assert send("d-1").json()["duplicate"] is False


def test_the_header_goes_before_the_delivery_id(feed, wine):
    feed.post(observation(delivery_id="d-1"), Idempotency_Key="i-1")
    assert FeedAnswer.objects.get().key == "i-1"


@pytest.mark.parametrize("id_", ["", "x" * 201, "a\tb", "a\x7fb", "a\x00b", "a\nb", "x" * 10_000])
def test_row_89_a_key_that_is_none_is_a_422(feed, wine, id_):
    assert refusal(feed.post(observation(), Idempotency_Key=id_)) == (422, "invalid_event_id", "Idempotency-Key")
    assert nothing_written()


@pytest.mark.parametrize("id_", ["x", "x" * 200, '"8e03978e-40d5-43dd-bc93-6894a57f9324"', "a b;c=d", "ü" * 200])
def test_a_key_may_be_any_printable_text(send, wine, id_):
    assert send(id_).json()["duplicate"] is False
    assert send(id_).json()["duplicate"] is True


def test_without_an_id_the_same_observation_again_is_unchanged(feed, wine):
    feed.post(observation())
    again = feed.post(observation()).json()
    assert (again["duplicate"], again["results"][0]["reason"]) == (False, "unchanged")
    assert len(published()) == 1


class Twin(threading.Thread):
    """Reserves a merchant's id in a transaction that stays open until it is told how to end."""

    def __init__(self, merchant, key, body):
        super().__init__(daemon=True)
        self.arguments = (merchant, key, body)
        self.reserved, self.may_end = threading.Event(), threading.Event()
        self.start()
        assert self.reserved.wait(DEADLINE)

    def run(self):
        from pricing.feeds import answers

        merchant, key, body = self.arguments

        def work(new):
            self.reserved.set()
            assert self.may_end.wait(DEADLINE)
            return [{"accepted": 1, "duplicate": False, "results": [], "event_ids": [], "ignored_fields": 0}]

        try:
            answers.once(merchant=merchant, units=[answers.Unit(key, body)], work=work)
        finally:
            connection.close()

    def end(self):
        self.may_end.set()
        self.join(DEADLINE)
        assert not self.is_alive()


BODY = b'{"wine_id":"wn_4417","price":"189.00","currency":"USD","occurred_at":"2026-03-14T09:12:04Z"}'


def test_row_91_a_request_waits_for_its_twin_and_gets_its_answer(feed, merchant, wine):
    twin = Twin(merchant, "d-1", BODY)
    ender = threading.Thread(target=lambda: (until_in_thread(), twin.end()))
    ender.start()
    response = feed.post(BODY, Idempotency_Key="d-1")
    ender.join(DEADLINE)
    assert (response.status_code, response.json()["duplicate"]) == (202, True)
    assert published() == []  # the twin's work published nothing, and neither did the request


def until_in_thread():
    try:
        until(lambda: waiting_for_a_lock() == 1, "the request to wait for its twin")
    finally:
        connection.close()


def test_row_91_a_request_whose_twin_takes_too_long_is_asked_to_come_again(feed, merchant, wine, settings):
    settings.FEED_LOCK_TIMEOUT = timedelta(milliseconds=200)
    twin = Twin(merchant, "d-1", BODY)
    response = feed.post(BODY, Idempotency_Key="d-1")
    assert refusal(response) == (503, "unavailable", None)
    assert response["Retry-After"] == "1"
    twin.end()
    assert feed.post(BODY, Idempotency_Key="d-1").json()["duplicate"] is True


def test_a_request_whose_wine_stays_locked_is_asked_to_come_again(feed, wine, settings):
    settings.FEED_LOCK_TIMEOUT = timedelta(milliseconds=200)
    locked, done = threading.Event(), threading.Event()

    def hold():
        try:
            with transaction.atomic():
                type(wine).objects.select_for_update(no_key=True).get(pk=wine.pk)
                locked.set()
                assert done.wait(DEADLINE)
        finally:
            connection.close()

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert locked.wait(DEADLINE)
    response = feed.post(observation(), Idempotency_Key="d-1")
    done.set()
    holder.join(DEADLINE)
    assert refusal(response)[:2] == (503, "unavailable")
    assert nothing_written()
    assert feed.post(observation(), Idempotency_Key="d-1").status_code == 202
