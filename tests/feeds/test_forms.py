"""NDJSON and CloudEvents bring the same observations as plain JSON, through the same checks."""

import base64
import json
from datetime import timedelta

import pytest

from pricing.models import FeedAnswer, Offer
from tests import cast
from tests.cast import NOW
from tests.feeds.conftest import nothing_written, observation, refusal
from tests.pricing.observed import published

pytestmark = pytest.mark.django_db(transaction=True)

NDJSON = "application/x-ndjson"
ONE, MANY = "application/cloudevents+json", "application/cloudevents-batch+json"
SOURCE = "https://shop.example/prices"


def event(data=None, **attributes):
    """A good event; an attribute given as `...` is left out."""
    good = {
        "specversion": "1.0",
        "id": "e-1",
        "source": SOURCE,
        "type": "example.shop.price",
        "data": observation() if data is None else data,
        **attributes,
    }
    return {name: value for name, value in good.items() if value is not ...}


def lines(*documents):
    return b"\n".join(json.dumps(document).encode() for document in documents)


def binary(feed, data=None, **attributes):
    """The same event with its attributes as headers."""
    whole = event(data, **attributes)
    body = whole.pop("data")
    headers = {f"ce_{name}": value for name, value in whole.items()}
    return feed.post(body, **headers)


FORMS = {
    "plain JSON": lambda feed, seen: feed.post(seen),
    "NDJSON": lambda feed, seen: feed.post(lines(seen), content_type=NDJSON),
    "a structured event": lambda feed, seen: feed.post(event(seen), content_type=ONE),
    "an event with its data in base64": lambda feed, seen: feed.post(
        event(data=..., data_base64=base64.b64encode(lines(seen)).decode()), content_type=ONE
    ),
    "a batch of events": lambda feed, seen: feed.post([event(seen)], content_type=MANY),
    "a binary event": binary,
}
# What stands before the name of a field in the answer.
PATHS = ["", "line 1: ", "data.", "data.", "[0].data.", ""]
PLACES = list(zip(FORMS.values(), PATHS, strict=True))


@pytest.mark.parametrize("post", FORMS.values(), ids=FORMS)
def test_one_observation_is_the_same_in_every_form(feed, wine, post):
    response = post(feed, observation(154.1))
    assert response.status_code == 202, response.content
    answer = response.json()
    assert (answer["accepted"], answer["duplicate"], answer["ignored_fields"]) == (1, False, 0)
    [message] = published()
    assert answer["event_ids"] == [message["event_id"]]
    assert message["body"]["new_price_usd"] == Offer.objects.get().price_usd
    assert str(Offer.objects.get().price_usd) == "154.10"
    assert Offer.objects.get().occurred_at == NOW


@pytest.mark.parametrize("bad", ["price", "wine_id", "currency", "occurred_at", "merchant_id"])
@pytest.mark.parametrize(("post", "path"), PLACES, ids=FORMS)
def test_every_form_is_refused_for_the_same_reasons(feed, wine, post, path, bad):
    code = "forbidden_feed" if bad == "merchant_id" else f"invalid_{'time' if bad == 'occurred_at' else bad}"
    response = post(feed, observation(**{bad: "no"}))
    assert refusal(response) == (403 if bad == "merchant_id" else 422, code, f"{path}{bad}")
    assert nothing_written()


@pytest.mark.parametrize(("post", "path"), PLACES, ids=FORMS)
def test_in_every_form_an_unknown_wine_is_named(feed, wine, post, path):
    assert refusal(post(feed, observation(wine_id="wn_1"))) == (422, "unknown_wine", f"{path}wine_id")
    assert nothing_written()


@pytest.mark.parametrize("post", FORMS.values(), ids=FORMS)
def test_in_every_form_what_we_do_not_know_is_counted(feed, wine, post):
    assert post(feed, observation(colour="red")).json()["ignored_fields"] == 1


# --- NDJSON -----------------------------------------------------------------------------------------------------


def test_lines_are_taken_together_and_answered_in_their_order(feed, wine):
    other = cast.wine("4418")
    body = lines(observation(), observation(wine_id=other.pk, price=20), observation(price=180)) + b"\r\n\n"
    answer = feed.post(body, content_type=NDJSON).json()
    assert [result["wine_id"] for result in answer["results"]] == ["wn_4417", "wn_4418", "wn_4417"]
    assert answer["results"][2]["reason"] == "stale"  # same time, another price
    assert len(published()) == 3


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (b'{"a": 1', (400, "invalid_json", "line 3")),
        (b"{} {}", (400, "invalid_json", "line 3")),
        (b"\xff", (400, "invalid_encoding", "line 3")),
        (b"[]", (422, "expected_object", "line 3")),
        (b'{"a": 1, "a": 2}', (400, "duplicate_key", "line 3: a")),
        (b'{"a": "\\u0000"}', (422, "forbidden_character", "line 3: a")),
        (b"[" * 100_000, (400, "too_deep", "line 3")),
        (json.dumps({"observations": [observation()]}).encode(), (422, "invalid_wine_id", "line 3: wine_id")),
    ],
)
def test_one_bad_line_refuses_all_and_is_named_by_its_number(feed, wine, second, expected):
    body = lines(observation()) + b"\n\n" + second + b"\n" + lines(observation())
    assert refusal(feed.post(body, content_type=NDJSON)) == expected
    assert nothing_written()


@pytest.mark.parametrize("body", [b"", b"\n \r\n"])
def test_no_line_at_all_is_a_422(feed, wine, body):
    assert refusal(feed.post(body, content_type=NDJSON)) == (422, "invalid_observations", None)


def test_lines_are_limited_as_a_list_is(feed, wine, settings):
    settings.FEED_MAX_BATCH = 2
    assert feed.post(lines(*[observation()] * 2), content_type=NDJSON).status_code == 202
    assert refusal(feed.post(lines(*[observation()] * 3), content_type=NDJSON)) == (413, "batch_too_large", None)


def test_lines_sent_again_under_their_key_are_a_duplicate(feed, wine):
    for duplicate in (False, True):
        answer = feed.post(lines(observation()), content_type=NDJSON, Idempotency_Key="n-1").json()
        assert answer["duplicate"] is duplicate
    assert len(published()) == 1


# --- CloudEvents ------------------------------------------------------------------------------------------------

EVENT_FORMS = {
    "structured": lambda feed, **attributes: feed.post(event(**attributes), content_type=ONE),
    "batched": lambda feed, **attributes: feed.post([event(**attributes)], content_type=MANY),
    "binary": binary,
}


@pytest.mark.parametrize("again", EVENT_FORMS.values(), ids=EVENT_FORMS)
@pytest.mark.parametrize("first", EVENT_FORMS.values(), ids=EVENT_FORMS)
def test_an_event_is_the_same_in_whatever_form_it_comes_again(feed, wine, first, again):
    one, two = first(feed).json(), again(feed).json()
    assert (one["duplicate"], two["duplicate"]) == (False, True)
    assert two["event_ids"] == one["event_ids"]
    assert len(published()) == 1
    assert FeedAnswer.objects.count() == 1


@pytest.mark.parametrize("post", EVENT_FORMS.values(), ids=EVENT_FORMS)
def test_an_id_belongs_to_its_source(feed, wine, post):
    assert post(feed).json()["duplicate"] is False
    assert post(feed, source="https://elsewhere.example").json()["duplicate"] is False
    assert [message["attributes"]["merchant_delivery_id"] for message in published()] == ["e-1"]
    assert published()[0]["attributes"]["merchant_delivery_source"] == SOURCE


@pytest.mark.parametrize(
    ("post", "field"), list(zip(EVENT_FORMS.values(), ["id", "[0].id", "ce-id"], strict=True)), ids=EVENT_FORMS
)
def test_an_id_used_again_for_something_else_is_a_409(feed, wine, post, field):
    post(feed)
    assert refusal(post(feed, data=observation("154.00"))) == (409, "id_conflict", field)
    assert str(Offer.objects.get().price_usd) == "189.00"


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"specversion": ...}, "invalid_cloudevent"),
        ({"specversion": "0.3"}, "invalid_cloudevent"),
        ({"id": ...}, "invalid_event_id"),
        ({"id": ""}, "invalid_event_id"),
        ({"id": "x" * 201}, "invalid_event_id"),
        ({"source": ...}, "invalid_cloudevent"),
        ({"source": ""}, "invalid_cloudevent"),
        ({"source": "x" * 501}, "invalid_cloudevent"),
        ({"type": ...}, "invalid_cloudevent"),
        ({"time": "yesterday"}, "invalid_time"),
        ({"time": "2026-02-30T00:00:00Z"}, "invalid_time"),
    ],
)
@pytest.mark.parametrize(
    ("post", "path"), list(zip(EVENT_FORMS.values(), ["", "[0].", "ce-"], strict=True)), ids=EVENT_FORMS
)
def test_a_bad_envelope_is_a_422_that_names_the_attribute(feed, wine, post, path, bad, code):
    [name] = bad
    assert refusal(post(feed, **bad)) == (422, code, f"{path}{name}")
    assert nothing_written()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (event(id=7), (422, "invalid_event_id", "id")),
        (event(id="a\nb"), (422, "invalid_event_id", "id")),
        (event(source=["x"]), (422, "invalid_cloudevent", "source")),
        (event(datacontenttype="text/xml"), (422, "invalid_cloudevent", "datacontenttype")),
        (event(data=...), (422, "invalid_cloudevent", "data")),
        (event(data_base64="e30="), (422, "invalid_cloudevent", "data")),
        (event(data="text"), (422, "expected_object", "data")),
        (event(data=..., data_base64="%%"), (422, "invalid_cloudevent", "data_base64")),
        (event(data=..., data_base64=7), (422, "invalid_cloudevent", "data_base64")),
        (event(data=..., data_base64="ey8="), (400, "invalid_json", "data_base64")),
        (event(time=7), (422, "invalid_time", "time")),
        ([event()], (422, "expected_object", None)),
        ("text", (422, "expected_object", None)),
    ],
)
def test_a_structured_event_that_is_none_is_refused(feed, wine, body, expected):
    assert refusal(feed.post(body, content_type=ONE)) == expected
    assert nothing_written()


def test_an_event_may_hold_a_list_of_observations(feed, wine):
    data = {"observations": [observation(), observation(price="no")]}
    assert refusal(feed.post(event(data), content_type=ONE)) == (422, "invalid_price", "data.observations[1].price")
    data["observations"][1] = observation(occurred_at="2026-03-14T10:00:00Z", price=180)
    assert feed.post(event(data), content_type=ONE).json()["accepted"] == 2


@pytest.mark.parametrize("post", EVENT_FORMS.values(), ids=EVENT_FORMS)
def test_the_events_time_stands_for_the_observations_where_it_has_none(feed, wine, post):
    own = "2026-03-14T09:12:04Z"
    post(feed, id="e-1", data=observation(occurred_at=...), time="2026-03-01T00:00:00+01:00")
    assert Offer.objects.get().occurred_at.isoformat() == "2026-02-28T23:00:00+00:00"
    post(feed, id="e-2", data=observation(price=180, occurred_at=own), time="2026-03-15T00:00:00Z")
    assert Offer.objects.get().occurred_at == NOW
    assert refusal(post(feed, id="e-3", data=observation(occurred_at=...)))[:2] == (422, "invalid_time")


def test_headers_of_an_event_are_percent_decoded(feed, wine):
    binary(feed, id="Euro%20%E2%82%AC")
    assert published()[0]["attributes"]["merchant_delivery_id"] == "Euro €"
    assert refusal(binary(feed, id="%ff")) == (422, "invalid_cloudevent", "ce-id")
    assert refusal(binary(feed, id="a%00b")) == (422, "invalid_event_id", "ce-id")


def test_extensions_are_counted_and_a_trace_goes_with_its_event(feed, wine):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    answer = feed.post(event(traceparent=trace, partitionkey="p"), content_type=ONE).json()
    assert answer["ignored_fields"] == 1
    assert published()[0]["attributes"]["traceparent"] == trace
    feed.post(event(observation(180, occurred_at="2026-03-14T10:00:00Z"), id="e-2", traceparent="no"), content_type=ONE)
    assert "traceparent" not in published()[1]["attributes"]


def test_an_event_in_binary_form_brings_json(feed, wine):
    headers = {"ce_specversion": "1.0", "ce_id": "e-1", "ce_source": SOURCE, "ce_type": "t"}
    assert refusal(feed.post(lines(observation()), content_type=NDJSON, **headers))[0] == 415
    assert nothing_written()


def test_an_event_key_is_not_another_requests_key(feed, wine):
    feed.post(event(), content_type=ONE)
    assert feed.post(observation(), Idempotency_Key="e-1").json()["duplicate"] is False
    assert feed.post(observation(delivery_id="e-1")).status_code == 409


# --- Batches of events ------------------------------------------------------------------------------------------


def hour(number, id_=None):
    seen = observation(200 + number, occurred_at=(NOW + timedelta(hours=number)).isoformat())
    return event(seen, id=id_ or f"e-{number}")


def test_a_batch_with_old_and_new_events_takes_the_new_ones(feed, wine):
    first = feed.post([hour(1), hour(2)], content_type=MANY).json()
    second = feed.post([hour(2), hour(3), hour(1)], content_type=MANY).json()
    assert (first["duplicate"], second["duplicate"]) == (False, False)
    assert [message["attributes"]["merchant_delivery_id"] for message in published()] == ["e-1", "e-2", "e-3"]
    assert first["event_ids"] == [message["event_id"] for message in published()[:2]]
    one, two = first["event_ids"]
    assert second["event_ids"] == [two, published()[2]["event_id"], one]
    assert [result["event_id"] for result in second["results"]] == second["event_ids"]
    third = feed.post([hour(3), hour(2)], content_type=MANY).json()
    assert (third["duplicate"], third["accepted"]) == (True, 2)
    assert len(published()) == 3


def test_one_bad_event_refuses_the_batch_and_uses_no_id_up(feed, wine):
    bad = event(observation(wine_id="wn_1"), id="e-2")
    assert refusal(feed.post([hour(1), bad], content_type=MANY)) == (422, "unknown_wine", "[1].data.wine_id")
    assert nothing_written()
    assert feed.post([hour(1), hour(2)], content_type=MANY).json()["duplicate"] is False


def test_one_conflict_refuses_the_batch(feed, wine):
    feed.post([hour(1)], content_type=MANY)
    assert refusal(feed.post([hour(2), hour(3, "e-1")], content_type=MANY)) == (409, "id_conflict", "[1].id")
    assert len(published()) == FeedAnswer.objects.count() == 1


def test_an_event_twice_in_a_batch_is_taken_once(feed, wine):
    answer = feed.post([hour(1), hour(1)], content_type=MANY).json()
    assert answer["event_ids"][0] == answer["event_ids"][1]
    assert answer["duplicate"] is False
    assert len(published()) == FeedAnswer.objects.count() == 1
    assert refusal(feed.post([hour(2), hour(3, "e-2")], content_type=MANY)) == (409, "id_conflict", "[1].id")


def test_a_batch_under_a_key_of_its_own_is_one_delivery(feed, wine):
    for duplicate in (False, True):
        answer = feed.post([hour(1), hour(2)], content_type=MANY, Idempotency_Key="b-1").json()
        assert (answer["duplicate"], answer["accepted"]) == (duplicate, 2)
    assert FeedAnswer.objects.get().key == "b-1"
    assert refusal(feed.post([hour(1)], content_type=MANY, Idempotency_Key="b-1")) == (409, "id_conflict", None)


@pytest.mark.parametrize("body", [b"[]", b"{}", b"7"])
def test_a_batch_that_is_none_is_a_422(feed, wine, body):
    assert refusal(feed.post(body, content_type=MANY)) == (422, "invalid_observations", None)


def test_events_and_their_observations_are_limited_together(feed, wine, settings):
    settings.FEED_MAX_BATCH = 3
    pair = event({"observations": [observation(), observation()]})
    assert feed.post([hour(1), hour(2), hour(3)], content_type=MANY).status_code == 202
    assert refusal(feed.post([pair, pair], content_type=MANY)) == (413, "batch_too_large", None)
    assert refusal(feed.post([7, 7, 7, 7], content_type=MANY)) == (413, "batch_too_large", None)
