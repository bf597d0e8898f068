"""The parser and the adapter take any bytes, in linear time, and raise nothing but FeedError."""

import json
import signal
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pricing.feeds.canonical import adapt
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import Number, parse
from tests.feeds.conftest import observation

settings.register_profile("unhurried", deadline=None)  # other tests may have the processor
settings.load_profile("unhurried")
NOW = datetime(2026, 3, 14, 12, 0, tzinfo=UTC)

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


def numbers_as_text(value):
    """A JSON value with its numbers as parse() gives them."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return [numbers_as_text(item) for item in value]
    if isinstance(value, dict):
        return {name: numbers_as_text(item) for name, item in value.items()}
    return Number(json.dumps(value))


def test_numbers_keep_the_digits_that_were_sent():
    assert parse(b'{"a": [1, -0.10, 1E400, 12.299999999999999]}') == {
        "a": [Number("1"), Number("-0.10"), Number("1E400"), Number("12.299999999999999")]
    }


def test_escapes_and_brackets_in_strings_are_text():
    assert parse(b'{"a": "]}[{\\"\\\\", "\\ud83c\\udf77": "\\\\u0000"}') == {"a": ']}[{"\\', "🍷": "\\u0000"}


def test_sixteen_levels_are_enough_for_anybody():
    assert parse(b"[" * 16 + b"]" * 16)
    with pytest.raises(FeedError, match="too_deep"):
        parse(b"[" * 17 + b"]" * 17)


@given(documents)
def test_what_a_strict_writer_writes_is_read_back(document):
    try:
        assert parse(json.dumps(document).encode()) == numbers_as_text(document)
    except FeedError as refusal:
        assert refusal.code in ("too_deep", "forbidden_character")


@given(st.binary())
@example(b'"')
@example(b"\\")
@example(b'{"\\')
@example(b'{"a":1' + b"0" * 5000 + b"}")
def test_any_bytes_are_parsed_or_refused(body):
    try:
        parse(body)
    except FeedError as refusal:
        assert refusal.status in (400, 422)


@given(st.text(alphabet='[]{}",:\\u0d8e1-.truefalsn \n\x00\ud800', max_size=60))
def test_any_text_of_json_letters_is_parsed_or_refused(text):
    try:
        parse(text.encode("utf-8", "surrogatepass"))
    except FeedError as refusal:
        assert refusal.status in (400, 422)


@given(st.sampled_from(["wine_id", "price", "currency", "occurred_at", "merchant_id", "delivery_id"]), documents)
def test_any_value_in_any_field_is_taken_or_refused_by_name(name, value):
    document = {**observation(), name: numbers_as_text(value)}
    try:
        adapt(document, merchant_id="mch_082", now=NOW)
    except FeedError as refusal:
        assert (refusal.status, refusal.field) in ((422, name), (403, "merchant_id"))


@given(documents)
def test_any_document_is_taken_or_refused(document):
    try:
        adapt(numbers_as_text(document), merchant_id="mch_082", now=NOW)
    except FeedError as refusal:
        assert refusal.status in (413, 422, 403)


@given(st.decimals(min_value="0.01", max_value="99999999.99", places=2))
def test_any_price_to_the_cent_is_taken_exactly(price):
    for value in (Number(f"{price:f}"), f"{price:f}"):
        [taken] = adapt(observation(value), merchant_id="mch_082", now=NOW).observations
        assert taken.price_usd == price
        assert taken.price_usd.as_tuple().exponent == -2


HOSTILE = {
    "escaped quotes, never closed": b'"' + b'\\"' * 450_000,
    "quotes": b'"' * 900_001,
    "backslashes": b'"' + b"\\" * 900_001,
    "brackets in strings": b'["' + b"[" * 900_000 + b'"]',
    "half closed": b"[]" * 450_000,
    "digits": b"1" * 900_000,
    "exponents": b'{"price": 1e' + b"9" * 900_000 + b"}",
    "keys": b"{" + b",".join(b'"%d":0' % n for n in range(80_000)) + b"}",
    "escapes": b'{"a":"' + b"\\ud83c\\udf77" * 70_000 + b'"}',
    "numbers": b"[" + b",".join([b"0"] * 450_000) + b"]",
}


@pytest.fixture
def deadline():
    """A minute for what takes half a second; a parser in quadratic time would need hours."""

    def expired(*_):
        raise TimeoutError("the parser looks at characters again and again")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("deadline")
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_body_takes_time_in_proportion_to_its_length(body):
    try:
        adapt(parse(body), merchant_id="mch_082", now=NOW)
    except FeedError as refusal:
        assert refusal.status in (400, 422)
    else:
        pytest.fail("none of these is an observation")


def test_a_price_is_a_decimal_with_two_places():
    [taken] = adapt(observation(Number("12.1")), merchant_id="mch_082", now=NOW).observations
    assert str(taken.price_usd) == "12.10"
    assert taken.price_usd == Decimal("12.10")
