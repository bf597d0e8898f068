"""Rows 29 to 101: every bad body gets its answer, in the one shape, and nothing is written."""

import json
import logging
from datetime import UTC, datetime, timedelta

import pytest

from tests import cast
from tests.feeds.conftest import nothing_written, observation, refusal

pytestmark = pytest.mark.django_db

GOOD = json.dumps(observation()).encode()
# What some of these bodies hold, and no answer may.
NEVER_REPEATED = ("<script>", "jndi", "{{7*7}}", "1=1", "12,50", "1111")


def with_price(text):
    """A body whose price is this very text."""
    return GOOD.replace(b'"189.00"', text.encode())


BODIES = {
    "29 empty": (b"", 400, "invalid_json", None),
    "30 whitespace": (b" \r\n\t ", 400, "invalid_json", None),
    "31 truncated": (GOOD[:-1], 400, "invalid_json", None),
    "31 truncated in a string": (GOOD[:20], 400, "invalid_json", None),
    "32 trailing garbage": (GOOD + b"x", 400, "invalid_json", None),
    "33 two documents": (GOOD + b"\n" + GOOD, 400, "invalid_json", None),
    "34 comment": (b"/* prices */" + GOOD, 400, "invalid_json", None),
    "34 line comment": (GOOD + b"// prices", 400, "invalid_json", None),
    "35 single quotes": (GOOD.replace(b'"', b"'"), 400, "invalid_json", None),
    "36 trailing comma": (GOOD[:-1] + b",}", 400, "invalid_json", None),
    "37 invalid UTF-8": (GOOD.replace(b"wn_4417", b"wn_\xff"), 400, "invalid_encoding", None),
    "37 overlong UTF-8": (GOOD.replace(b"wn_4417", b"wn_\xc0\xaf"), 400, "invalid_encoding", None),
    "37 surrogate in UTF-8": (GOOD.replace(b"wn_4417", b"wn_\xed\xa0\x80"), 400, "invalid_encoding", None),
    "38 UTF-16": (GOOD.decode().encode("utf-16"), 400, "invalid_encoding", None),
    "38 UTF-16 without mark": (GOOD.decode().encode("utf-16-le"), 400, "invalid_encoding", None),
    "38 UTF-32": (GOOD.decode().encode("utf-32-be"), 400, "invalid_encoding", None),
    "39 byte order mark": (b"\xef\xbb\xbf" + GOOD, 400, "invalid_encoding", None),
    "41 array": (b"[" + GOOD + b"]", 422, "expected_object", None),
    "41 string": (b'"price"', 422, "expected_object", None),
    "41 null": (b"null", 422, "expected_object", None),
    "41 true": (b"true", 422, "expected_object", None),
    "41 number": (b"154.00", 422, "expected_object", None),
    "42 duplicate key": (GOOD[:-1] + b',"price":"1.00"}', 400, "duplicate_key", "price"),
    "42 duplicate key, escaped": (GOOD[:-1] + b',"pric\\u0065":"1.00"}', 400, "duplicate_key", "price"),
    "42 duplicate unknown key": (GOOD[:-1] + b',"x":{"y y":1,"y y":2}}', 400, "duplicate_key", None),
    "43 depth 17": (GOOD[:-1] + b',"x":' + b"[" * 16 + b"]" * 16 + b"}", 400, "too_deep", None),
    "43 depth 2,000": (b'{"x":' * 2_000 + b"1" + b"}" * 2_000, 400, "too_deep", None),
    "43 depth 100,000": (b"[" * 100_000 + b"]" * 100_000, 400, "too_deep", None),
    "43 depth 900,000, never closed": (b"[" * 900_000, 400, "too_deep", None),
    "45 NaN": (with_price("NaN"), 400, "invalid_json", None),
    "45 Infinity": (with_price("Infinity"), 400, "invalid_json", None),
    "45 -Infinity": (with_price("-Infinity"), 400, "invalid_json", None),
    "46 1e400": (with_price("1e400"), 422, "invalid_price", "price"),
    "47 1e999999": (with_price("1e999999"), 422, "invalid_price", "price"),
    "48 1e9999999999999999999": (with_price("1e9999999999999999999"), 422, "invalid_price", "price"),
    "48 a million digits": (with_price("1" * 900_000), 422, "invalid_price", "price"),
    "49 NUL in a value": (GOOD.replace(b"wn_4417", b"wn_\\u0000"), 422, "forbidden_character", "wine_id"),
    "50 NUL in a key": (GOOD[:-1] + b',"a\\u0000":1}', 422, "forbidden_character", None),
    "50 NUL in an unknown field": (GOOD[:-1] + b',"a":[{"b":"\\u0000"}]}', 422, "forbidden_character", "a[0].b"),
    "51 lone surrogate": (GOOD.replace(b"wn_4417", b"\\ud800"), 422, "forbidden_character", "wine_id"),
    "51 low surrogate": (GOOD.replace(b"wn_4417", b"\\uDFFF"), 422, "forbidden_character", "wine_id"),
    "51 surrogate as a string": (b'"\\ud800"', 422, "forbidden_character", None),
    "52 raw control character": (GOOD.replace(b"wn_4417", b"wn_\x01"), 400, "invalid_json", None),
    "52 raw newline": (GOOD.replace(b"wn_4417", b"wn_\n"), 400, "invalid_json", None),
    "53 price missing": (observation(...), 422, "invalid_price", "price"),
    "54 null": (observation(None), 422, "invalid_price", "price"),
    "55 empty": (observation(""), 422, "invalid_price", "price"),
    "56 true": (observation(True), 422, "invalid_price", "price"),
    "57 []": (observation([]), 422, "invalid_price", "price"),
    "58 {}": (observation({}), 422, "invalid_price", "price"),
    "66 float noise": (with_price("12.299999999999999"), 422, "invalid_price", "price"),
    "70 exact third decimal": (with_price("12.345"), 422, "invalid_price", "price"),
    "92 unknown wine": (observation(wine_id="wn_1"), 422, "unknown_wine", "wine_id"),
    "98 no items": ({"observations": []}, 422, "invalid_observations", "observations"),
    "98 null": ({"observations": None}, 422, "invalid_observations", "observations"),
    "98 an object": ({"observations": {"0": observation()}}, 422, "invalid_observations", "observations"),
    "98 one and many": ({**observation(), "observations": [observation()]}, 422, "invalid_observations", "currency"),
    "99 1,001 items": ({"observations": [observation()] * 1001}, 413, "batch_too_large", "observations"),
    "100 one bad among 10": (
        {"observations": [observation()] * 7 + [observation("12,50")] + [observation()] * 2},
        422,
        "invalid_price",
        "observations[7].price",
    ),
    "100 one unknown among 10": (
        {"observations": [observation()] * 9 + [observation(wine_id="wn_1")]},
        422,
        "unknown_wine",
        "observations[9].wine_id",
    ),
    "100 an item that is none": ({"observations": [observation(), 7]}, 422, "expected_object", "observations[1]"),
    "89 delivery id null": (observation(delivery_id=None), 422, "invalid_event_id", "delivery_id"),
    "89 delivery id empty": (observation(delivery_id=""), 422, "invalid_event_id", "delivery_id"),
    "89 delivery id 10 kB": (observation(delivery_id="x" * 10_000), 422, "invalid_event_id", "delivery_id"),
    "89 delivery id with newline": (observation(delivery_id="a\nb"), 422, "invalid_event_id", "delivery_id"),
    "89 delivery id a number": (observation(delivery_id=7), 422, "invalid_event_id", "delivery_id"),
}
for number, text in {
    59: "12,50",
    60: " 12 ",
    61: "1_000",
    62: "１２",
    63: "+5",
    64: "0x10",
    65: "١٢",
    67: "0",
    68: "-1",
    69: "-0.00",
    70: "12.345",
    71: "123456789.00",
    72: "0.001",
}.items():
    BODIES[f"{number} price {text!a}"] = (observation(text), 422, "invalid_price", "price")
for text in ("1e2", "0.00", "12.", ".5", "012", "1,600.00", "$12", "12 USD", "1/2", "99999999.999", "12\u00a0", "12\n"):
    BODIES[f"prices: {text!a}"] = (observation(text), 422, "invalid_price", "price")
for text in ("0", "-1", "-0.0", "0.001", "1e2", "123456789", "100000000"):
    BODIES[f"prices: number {text}"] = (with_price(text), 422, "invalid_price", "price")
for value in (..., None, "", "eur", "XXX", "EURO", "USD ", "usd", 840, ["USD"]):
    BODIES[f"74 currency {value!a}"] = (observation(currency=value), 422, "invalid_currency", "currency")
for number, value in {
    "75 missing": ...,
    "75 null": None,
    "76 naive": "2026-03-14T09:12:04",
    "77 date only": "2026-03-14",
    "78 week date": "2026-W11-6T09:12:04Z",
    "79 30 February": "2024-02-30T09:12:04Z",
    "80 24:00": "2026-03-14T24:00:00Z",
    "81 second 60": "2026-03-14T09:12:60Z",
    "82 offset +25:00": "2026-03-14T09:12:04+25:00",
    "83 a number": 1773479524,
}.items():
    BODIES[f"{number}"] = (observation(occurred_at=value), 422, "invalid_time", "occurred_at")
for name, value in {
    "85 ahead": "2999-01-01T00:00:00Z",
    "85 the last moment there is": "9999-12-31T23:59:59.999999-15:59",
    "86 before 2000": "1999-12-31T23:59:59Z",
    "86 the first moment there is": "0001-01-01T00:00:00+15:59",
}.items():
    BODIES[name] = (observation(occurred_at=value), 422, "time_out_of_range", "occurred_at")
for value in (
    "' OR 1=1--",
    "../",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "<script>alert(1)</script>",
    "wn_\u212a",
    "4417",
    "wn_",
):
    BODIES[f"95 wine {value!a}"] = (observation(wine_id=value), 422, "invalid_wine_id", "wine_id")
for value in (..., None, "", 4417, ["wn_4417"], "wn_" + "1" * 38, "wn_4417\n", "wn_4417 "):
    BODIES[f"wines: {value!a:.20}"] = (observation(wine_id=value), 422, "invalid_wine_id", "wine_id")


@pytest.mark.parametrize(("body", "status", "code", "field"), BODIES.values(), ids=BODIES)
def test_a_bad_body_is_told_what_is_wrong_with_it(feed, wine, body, status, code, field):
    response = feed.post(body)
    assert refusal(response) == (status, code, field)
    assert nothing_written()
    said = {**response.json()["error"], "request_id": ""}  # which is random, and may hold any four digits
    assert not any(sent in json.dumps(said) for sent in NEVER_REPEATED)


def test_row_85_five_minutes_ahead_is_the_limit(feed, wine):
    ahead = datetime.now(UTC) + timedelta(minutes=4, seconds=50)
    assert feed.post(observation(occurred_at=ahead.isoformat())).status_code == 202
    ahead = datetime.now(UTC) + timedelta(minutes=5, seconds=10)
    assert refusal(feed.post(observation(occurred_at=ahead.isoformat())))[1] == "time_out_of_range"


def test_row_93_a_retired_wine_is_as_unknown_as_one_that_never_was(feed):
    cast.wine(retired_at=cast.NOW)
    assert refusal(feed.post(observation())) == (422, "unknown_wine", "wine_id")
    assert nothing_written()


def test_row_92_an_unknown_wine_is_logged_for_triage_with_ids_alone(feed, wine, caplog):
    with caplog.at_level(logging.INFO):
        feed.post(observation("777.77", wine_id="wn_nobody"))
    [line] = [record.msg for record in caplog.records if record.msg["event"] == "feed.unknown_wine"]
    assert (line["wine_id"], line["merchant_id"]) == ("wn_nobody", "mch_082")
    assert "777.77" not in caplog.text
