import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from jobs.errors import PermanentError
from jobs.messages import dumps
from pricing.events import LATE_PRICE_OBSERVED, PRICE_CHANGED, PriceChanged
from tests.pricing.observed import received

EVENT = PriceChanged(
    event_id="evt_9f31",
    wine_id="wn_4417",
    wine_name="Ch. Montrose 2016",
    merchant_id="mch_082",
    old_price_usd=Decimal("189"),
    new_price_usd=Decimal("154.0"),
    currency="USD",
    occurred_at=datetime(2026, 3, 14, 9, 12, 4, tzinfo=UTC),
)
BODY = {
    "event_id": "evt_9f31",
    "type": "wine.price_changed",
    "occurred_at": "2026-03-14T09:12:04Z",
    "wine_id": "wn_4417",
    "wine_name": "Ch. Montrose 2016",
    "merchant_id": "mch_082",
    "old_price_usd": Decimal("189.00"),
    "new_price_usd": Decimal("154.00"),
    "currency": "USD",
}


def test_the_body_is_the_canonical_event_and_its_prices_have_two_decimals():
    message = EVENT.as_message(attributes={"request_id": "req_1"})
    assert message.body == BODY
    assert list(message.body) == list(BODY)
    assert '"old_price_usd":189.00,"new_price_usd":154.00,' in dumps(message.body)
    assert (message.type, message.key, message.event_id) == (PRICE_CHANGED, "wn_4417", "evt_9f31")
    assert message.attributes == {"request_id": "req_1"}


def test_a_late_price_differs_in_its_type_alone():
    message = EVENT.as_message(LATE_PRICE_OBSERVED)
    assert message.type == LATE_PRICE_OBSERVED
    assert message.body == {**BODY, "type": LATE_PRICE_OBSERVED}


def test_times_are_published_in_utc():
    at = datetime(2026, 3, 14, 10, 12, 4, 250_000, tzinfo=timezone(timedelta(hours=1)))
    message = PriceChanged(**{**EVENT.__dict__, "occurred_at": at, "old_price_usd": None}).as_message()
    assert message.body["occurred_at"] == "2026-03-14T09:12:04.250000Z"
    assert message.body["old_price_usd"] is None


def test_what_was_published_is_read_back_the_same():
    assert PriceChanged.parse(received(dumps(EVENT.as_message().body))) == EVENT


def test_the_convenience_fields_may_be_missing_or_odd():
    contract = {name: BODY[name] for name in ("event_id", "wine_id", "new_price_usd", "occurred_at", "currency")}
    parsed = PriceChanged.parse(received({**contract, "merchant_id": 82}))
    assert (parsed.wine_name, parsed.merchant_id, parsed.old_price_usd) == ("", "", None)


def test_the_malformed_event_of_the_course_is_told_everything_that_is_wrong_with_it():
    body = {**BODY, "currency": "USD "}
    del body["new_price_usd"]
    with pytest.raises(PermanentError) as refusal:
        PriceChanged.parse(received(body))
    assert str(refusal.value) == "new_price_usd required; currency 'USD ' not ISO-4217"


WRONG = {
    "event_id": [None, "", 7],
    "wine_id": [None, "", 7, "w" * 41],
    "new_price_usd": [None, "154.00", True, 0, -1, Decimal("0.001"), Decimal("154.005"), 100_000_000, [], {}],
    "occurred_at": [None, "", "2026-03-14", "2026-03-14T09:12:04", "2024-02-30T00:00:00Z", 1773479524, True],
    "currency": [None, "", "usd", "EURO", "XXX", "EUR", 840],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_each_contract_field_is_named_when_it_is_wrong(name, value):
    with pytest.raises(PermanentError, match=rf"^{name} [^;]+$"):
        PriceChanged.parse(received({**BODY, name: value}))


@pytest.mark.parametrize("name", WRONG)
def test_each_contract_field_is_named_when_it_is_missing(name):
    body = {key: value for key, value in BODY.items() if key != name}
    with pytest.raises(PermanentError, match=rf"^{name} required$"):
        PriceChanged.parse(received(body))


@pytest.mark.parametrize("body", ["[]", "null", '"evt_9f31"', "7"])
def test_a_body_that_is_no_object_is_permanent(body):
    with pytest.raises(PermanentError, match="not an object"):
        PriceChanged.parse(received(body))


def test_a_reason_shows_only_the_beginning_of_a_long_value():
    with pytest.raises(PermanentError) as refusal:
        PriceChanged.parse(received({**BODY, "currency": "U" * 100_000}))
    assert len(str(refusal.value)) < 120
    json.dumps(str(refusal.value))
