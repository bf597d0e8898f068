"""A single price takes the short way: looked at without a lock, written by one statement, to the same end as the long
way; and whatever somebody else does between the two, it is judged by what then is."""

import io
import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.database import run
from jobs.messages import dumps
from pricing import keys
from pricing.feeds import single
from pricing.feeds.glance import LONGEST, Glance, glance
from pricing.models import FeedAnswer, Offer, RawBody, Wine
from pricing.services import record_observations
from tests import cast
from tests.cast import NOW
from tests.feeds.conftest import Feed, nothing_written, observation, refusal
from tests.feeds.test_intake import accepted
from tests.pricing.observed import load_rates, published, seen
from tests.pricing.test_order import Writer, until, waiting_for_a_lock

pytestmark = pytest.mark.django_db(transaction=True)


def at(hours):
    return (NOW + timedelta(hours=hours)).isoformat()


WITHDRAWN = {"price": ..., "currency": ..., "withdrawn": True}
# What a merchant sends, one request each.
HISTORIES = {
    "a first price": [observation()],
    "another price": [observation(), observation("154.00", occurred_at=at(1))],
    "the same price later": [observation(), observation(occurred_at=at(1))],
    "tax, said later": [observation(), observation(tax="included", occurred_at=at(1))],
    "withdrawn": [observation(), observation(**WITHDRAWN, occurred_at=at(1))],
    "back at its price": [observation(), observation(**WITHDRAWN, occurred_at=at(1)), observation(occurred_at=at(2))],
    "back at another": [
        observation(),
        observation(**WITHDRAWN, occurred_at=at(1)),
        observation("99", occurred_at=at(2)),
    ],
    "other money": [observation("92.00", currency="EUR"), observation("91.00", currency="EUR", occurred_at=at(1))],
}


def without(row, *names):
    return {name: value for name, value in row.items() if name not in ("id", *names)}


def all_that_is_written(answers):
    """As it is but for ids and clocks; an event's id is its place in the log, wherever it is named."""
    log = published()
    ids = {message["event_id"]: f"event {place}" for place, message in enumerate(log)}

    def named(value):
        if isinstance(value, dict):
            return {name: named(inner) for name, inner in value.items() if name not in ("request_id", "raw_body")}
        if isinstance(value, list | tuple):
            return [named(inner) for inner in value]
        return ids.get(value, value) if isinstance(value, str) else value

    with connection.cursor() as cursor:
        cursor.execute("SELECT subscription_id, part, event_id, key FROM jobs_delivery ORDER BY 1, 2, id")
        deliveries = [[subscription, part, ids[id_], key] for subscription, part, id_, key in cursor.fetchall()]
    raw = RawBody.objects.order_by("id")
    assert [message["attributes"]["raw_body"] for message in log if message["type"] != "wine.offer_returned"]
    assert {message["attributes"]["raw_body"] for message in log} <= {str(body.pk) for body in raw}
    return named(
        {
            "answers": answers,
            "log": [without(message) for message in log],
            "deliveries": deliveries,
            "offers": [without(row, "updated_at") for row in Offer.objects.values()],
            "kept answers": [without(row, "created_at") for row in FeedAnswer.objects.order_by("id").values()],
            "bodies": [
                (body.merchant_id, body.source, body.headers, bytes(body.body), body.size, body.received_at > NOW)
                for body in raw
            ],
        }
    )


def send_all(feed, bodies):
    return [accepted(feed.post(body, Idempotency_Key=f"d-{number}")) for number, body in enumerate(bodies)]


@pytest.mark.parametrize("bodies", HISTORIES.values(), ids=HISTORIES)
def test_the_short_way_takes_two_statements_and_writes_what_the_long_way_does(feed, wine, bodies, monkeypatch):
    load_rates("2026-03-14", USD="1.10")
    with CaptureQueriesContext(connection) as queries:
        answers = send_all(feed, bodies)
    rates = sum(body.get("currency") == "EUR" for body in bodies)
    assert len(queries) == 2 * len(bodies) + rates, "the key with a look, and all that is written"
    short = all_that_is_written(answers)
    for model in (Offer, FeedAnswer, RawBody):
        model.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_delivery")
        cursor.execute("DELETE FROM jobs_message")
    monkeypatch.setattr(single, "look", lambda **_: None)
    assert all_that_is_written(send_all(feed, bodies)) == short


@pytest.mark.parametrize(
    ("body", "id_"),
    [
        (b'{"delivery_id": "d-1", "note": {"wine_id": "wn_1"}, %s}', None),
        (b'{"note": "\\"wine_id\\": \\"wn_1\\"", "delivery_id": "d-1", %s}', None),
        (b'{"delivery_id": "d-2", %s}', "d-1"),
        (b'{"delivery_id": "d\\u002d1", %s}', None),
        (b'{"delivery_id": "d-1", "note": "' + b"x" * LONGEST + b'", %s}', None),
        (b'{"delivery_id": "d-1", "merchant_id": "mch_082", %s}', None),
    ],
    ids=["another wine first", "another wine in a text", "two ids", "an escaped id", "too long to glance at", "plain"],
)
def test_what_a_glance_takes_it_for_makes_no_difference(feed, wine, body, id_):
    told = {"Idempotency_Key": id_} if id_ else {}
    sent = body % dumps(observation()).strip("{}").encode()
    first = accepted(feed.post(sent, **told))
    assert first["results"][0]["wine_id"] == "wn_4417"
    assert first["results"][0]["applied"]
    assert accepted(feed.post(sent, **told)) == {**first, "duplicate": True}
    assert FeedAnswer.objects.get().key == "d-1"
    assert len(published()) == 1


@pytest.mark.parametrize(
    ("key", "body", "taken_for"),
    [
        (None, b'{"wine_id": "wn_1"}', Glance("wn_1", None)),
        ("d-1", b'{"wine_id" : "wn_1", "delivery_id": "d-2"}', Glance("wn_1", "d-1")),
        (None, b'{"delivery_id": "d 2", "wine_id":"wn_1"}', Glance("wn_1", "d 2")),
        (None, b'{"wine_id": "wn_1", "delivery_id": "d\\u0000"}', Glance("wn_1", None)),
        (None, b'{"wine_id": "wn_1\\u0000"}', None),
        ("d\x00", b'{"wine_id": "wn_1"}', None),
        ("dé", b'{"wine_id": "wn_1"}', None),
        (None, b'{"observations": [{"wine_id": "wn_1"}]}', None),
        (None, b"\xff\xfe\x00", None),
        (None, b"", None),
    ],
)
def test_a_glance_sees_plain_names_alone(key, body, taken_for):
    assert glance(key, body) == taken_for


def test_what_is_wrong_with_a_body_that_was_glanced_at_is_said_after_what_is_wrong_with_the_key(feed, key, wine):
    bad = b'{"wine_id": "wn_4417", "price": '
    assert refusal(Feed("wck_abcdefgh_" + "x" * 43).post(bad))[:2] == (401, "invalid_credentials")
    assert refusal(feed.post(bad))[:2] == (400, "invalid_json")
    assert nothing_written()


class HangsUp(io.BytesIO):
    def read(self, *_):
        raise OSError("the sender went away")


def test_a_sender_who_goes_away_while_we_glance_is_told_so_after_the_key(feed, key, wine):
    for sent, said in ((key, (400, "incomplete_body")), ("wck_abcdefgh_" + "x" * 43, (401, "invalid_credentials"))):
        told = {"HTTP_AUTHORIZATION": f"Bearer {sent}", "CONTENT_LENGTH": "120", "CONTENT_TYPE": "application/json"}
        response = feed.client.request(
            REQUEST_METHOD="POST", PATH_INFO="/feeds/v1/price-changes", **told, **{"wsgi.input": HangsUp()}
        )
        assert refusal(response)[:2] == said
    assert nothing_written()


def between(monkeypatch, act):
    """Have something done after a request has looked, and before it writes; once."""
    write = single.write

    def later(*args, **told):
        monkeypatch.setattr(single, "write", write)
        act()
        written = write(*args, **told)
        assert not written, "what it had looked at was no longer so"
        return written

    monkeypatch.setattr(single, "write", later)


def record(merchant, *observations):
    record_observations(merchant=merchant, observations=observations, attributes={}, now=timezone.now())


@pytest.mark.parametrize("known", [True, False], ids=["an offer", "a first offer"])
def test_a_price_that_came_to_be_after_the_look_is_the_one_before_this(feed, merchant, wine, monkeypatch, known):
    if known:
        record(merchant, seen("120.00", NOW - timedelta(hours=1)))
    between(monkeypatch, lambda: record(merchant, seen("150.00")))
    accepted(feed.post(observation("154.00", occurred_at=at(1)), Idempotency_Key="d-1"))
    assert published()[-1]["body"]["old_price_usd"] == Decimal("150.00")
    assert Offer.objects.get().price_usd == Decimal("154.00")
    assert RawBody.objects.count() == FeedAnswer.objects.count() == 1


def test_a_later_price_that_came_to_be_after_the_look_stays(feed, merchant, wine, monkeypatch):
    between(monkeypatch, lambda: record(merchant, seen("150.00", NOW + timedelta(hours=1))))
    assert accepted(feed.post(observation("154.00")))["results"][0]["reason"] == "stale"
    assert Offer.objects.get().price_usd == Decimal("150.00")


def test_a_wine_that_was_retired_after_the_look_is_refused_and_nothing_is_kept(feed, wine, monkeypatch):
    between(monkeypatch, lambda: Wine.objects.update(retired_at=timezone.now()))
    assert refusal(feed.post(observation(), Idempotency_Key="d-1")) == (422, "unknown_wine", "wine_id")
    assert nothing_written()


def test_a_request_whose_twin_came_between_its_look_and_its_writing_gets_the_twins_answer(feed, wine, monkeypatch):
    first = []
    between(monkeypatch, lambda: first.append(accepted(feed.post(observation(), Idempotency_Key="d-1"))))
    again = accepted(feed.post(observation(), Idempotency_Key="d-1"))
    assert again == {**first[0], "duplicate": True}
    assert (len(published()), RawBody.objects.count(), FeedAnswer.objects.count()) == (1, 1, 1)


class Request(threading.Thread):
    """Posts in a thread of its own."""

    def __init__(self, key, body, id_):
        super().__init__(daemon=True)
        self.post = lambda: Feed(key).post(body, Idempotency_Key=id_)
        self.start()

    def run(self):
        try:
            self.response = self.post()
        finally:
            connection.close()

    def finish(self):
        self.join(30)
        return accepted(self.response)


def test_what_was_committed_while_it_waited_for_the_wine_counts(key, merchant, wine):
    """The statement saw the offer as it was before it waited; the version of the row tells it."""
    record(merchant, seen("120.00", NOW - timedelta(hours=1)))
    first = Writer(merchant, seen("150.00"))
    assert first.recorded.wait(30)
    request = Request(key, observation("154.00", occurred_at=at(1)), "d-1")
    until(lambda: waiting_for_a_lock() == 1, "the request to wait for the wine")
    first.finish()
    request.finish()
    assert [m["body"]["old_price_usd"] for m in published()][1:] == [Decimal("120.00"), Decimal("150.00")]
    assert Offer.objects.get().price_usd == Decimal("154.00")


def test_it_waits_for_another_merchants_price_of_the_wine_and_is_announced_after_it(key, wine):
    first = Writer(cast.merchant("083", "Merchant Y"), seen("150.00"))
    assert first.recorded.wait(30)
    request = Request(key, observation(), "d-1")
    until(lambda: waiting_for_a_lock() == 1, "the request to wait for the wine")
    first.finish()
    request.finish()
    assert [message["body"]["merchant_id"] for message in published()] == ["mch_083", "mch_082"]


def test_a_wine_that_was_renamed_while_it_waited_is_announced_by_its_new_name(key, wine):
    with transaction.atomic():
        Wine.objects.update(name="Château Montrose")
        request = Request(key, observation(), "d-1")
        until(lambda: run("SELECT pg_stat_clear_snapshot()", []) and waiting_for_a_lock() == 1, "the request to wait")
    request.finish()
    assert [message["body"]["wine_name"] for message in published()] == ["Château Montrose 2016"]


def test_prices_of_one_wine_sent_at_once_are_announced_in_the_order_of_their_commits(key, wine):
    """Each names as the price before it the one that was committed before it: none was judged by an older one."""
    others = [cast.merchant(f"09{n}", f"Merchant {n}") for n in range(3)]
    theirs = [keys.create_key(merchant=other, note="", now=timezone.now())[1] for other in others]
    for turn in range(4):
        requests = [
            Request(sender, observation(f"{100 + 10 * turn + n}.00", occurred_at=at(turn)), f"{turn}-{n}")
            for n, sender in enumerate([key, key, *theirs])
        ]
        for request in requests:
            request.finish()
    prices = {}
    for message in published():
        body = message["body"]
        if message["type"] == "wine.price_changed":
            assert body["old_price_usd"] == prices.get(body["merchant_id"]), body
            prices[body["merchant_id"]] = body["new_price_usd"]
    assert prices == {offer.merchant_id: offer.price_usd for offer in Offer.objects.all()}
    assert FeedAnswer.objects.count() == RawBody.objects.count() == 4 * 5


def test_the_look_goes_by_its_indexes_although_the_tables_were_small_when_it_was_planned(merchant, wine):
    with transaction.atomic():
        record(merchant, seen("120.00"))
        FeedAnswer.objects.create(merchant=merchant, key="d-1", body_sha256="")
        tables = ["pricing_wine", "pricing_offer", "pricing_feedanswer"]
        connection.cursor().execute(f"ANALYZE {', '.join(tables)}")
        count = "SELECT sum(seq_scan), sum(idx_scan) FROM pg_stat_xact_user_tables WHERE relname = ANY(%s)"
        before = run(count, [tables]).fetchone()
        for _ in range(10):
            assert single.look(merchant=merchant, wine_id="wn_4417", key="d-2").standing.price_usd == 120
        after = run(count, [tables]).fetchone()
    assert [later - sooner for later, sooner in zip(after, before, strict=True)] == [0, 30]
