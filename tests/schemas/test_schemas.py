"""The events' schemas: what is contract, what the code reads, and that a version keeps what the one before promised."""

import copy
import json
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import PermanentError
from jobs.messages import NewMessage, dumps
from pricing.events import (
    LATE_PRICE_OBSERVED,
    OFFER_RETURNED,
    OFFER_WITHDRAWN,
    PRICE_CHANGED,
    AvailabilityChanged,
    PriceChanged,
)
from tests.pricing.observed import received
from tests.pricing.test_events import BODY, EVENT, WRONG
from tests.schemas import published
from tests.schemas.compatibility import Change, changes
from winecellar import event_schemas
from winecellar.event_schemas import MESSAGES, release, released, version_of
from winecellar.routes import ROUTES

PRICE_EVENTS = [PRICE_CHANGED, LATE_PRICE_OBSERVED]


def is_valid(body: Any, type_: str = PRICE_CHANGED) -> bool:
    return bool(jsonschema_rs.Draft202012Validator(MESSAGES[type_]).is_valid(json.loads(dumps(body))))


@pytest.mark.parametrize("type_", MESSAGES)
def test_a_schema_is_a_schema_of_2020_12_and_marks_every_field(type_: str) -> None:
    jsonschema_rs.meta.validate(MESSAGES[type_])
    assert {field["x-stability"] for field in MESSAGES[type_]["properties"].values()} <= {"contract", "convenience"}


@pytest.mark.parametrize("type_", PRICE_EVENTS)
def test_four_fields_of_a_price_event_are_contract(type_: str) -> None:
    marked = [name for name, field in MESSAGES[type_]["properties"].items() if field["x-stability"] == "contract"]
    assert marked == ["event_id", "wine_id", "new_price_usd", "occurred_at"]


@pytest.mark.parametrize("type_", PRICE_EVENTS)
def test_a_schema_has_the_fields_that_are_published(type_: str) -> None:
    other_money = replace(EVENT, native_price=Decimal("141.20"), native_currency="EUR")
    assert set(MESSAGES[type_]["properties"]) == set(other_money.as_message(type_).body)


@pytest.mark.parametrize("type_", [OFFER_WITHDRAWN, OFFER_RETURNED])
def test_of_an_offer_that_ends_or_returns_the_schema_says_what_is_published_and_what_the_code_relies_on(
    type_: str,
) -> None:
    schema = MESSAGES[type_]
    told = {"price_event_id": "evt_2"} if type_ == OFFER_RETURNED else {"why": "out of stock"}
    event = AvailabilityChanged(
        event_id="evt_1",
        type=type_,
        wine_id="wn_4417",
        wine_name="Ch. Montrose 2016",
        merchant_id="mch_082",
        price_usd=Decimal("154"),
        occurred_at=EVENT.occurred_at,
        **told,
    )
    body = event.as_message().body
    assert set(schema["properties"]) == set(body)
    assert is_valid(body, type_)
    for name in body:
        left = {key: value for key, value in body.items() if key != name}
        assert is_valid(left, type_) == (name not in schema["required"])
        try:
            AvailabilityChanged.parse(received(left, type_=type_))
        except PermanentError:
            assert name in schema["required"]
        else:
            assert name not in schema["required"]
    assert {name for name, field in schema["properties"].items() if field["x-stability"] == "contract"} == {
        *("event_id", "wine_id", "merchant_id", "price_usd", "occurred_at"),
    }


def test_every_message_that_somebody_receives_has_a_schema() -> None:
    assert {type_ for route in ROUTES for type_ in route.message_types} == set(MESSAGES)


# --- What the schema says is what the code reads ---------------------------------------------------------------


def reads(body: Any) -> bool:
    try:
        PriceChanged.parse(received(body))
    except PermanentError:
        return False
    return True


NOT_SAID = [("occurred_at", "2024-02-30T00:00:00Z")]  # a pattern knows no calendar


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_the_code_refuses_is_not_of_the_schema(name: str, value: Any) -> None:
    body = {**BODY, name: value}
    assert not reads(body)
    assert is_valid(body) == ((name, value) in NOT_SAID)


@pytest.mark.parametrize("name", MESSAGES[PRICE_CHANGED]["properties"])
def test_a_field_may_be_missing_for_the_code_if_it_may_for_the_schema(name: str) -> None:
    body = {key: value for key, value in BODY.items() if key != name}
    assert is_valid(body) == reads(body)


@given(st.integers(min_value=1, max_value=10**10 - 1))
def test_any_price_that_can_be_published_is_of_the_schema(cents: int) -> None:
    body = {**BODY, "new_price_usd": Decimal(cents).scaleb(-2)}
    assert is_valid(body)
    assert reads(body)


@pytest.mark.parametrize(
    "body",
    [
        {**BODY, "new_price_usd": Decimal("154.005")},
        {**BODY, "more": 1},
        {name: value for name, value in BODY.items() if name != "event_id"},
        {**BODY, "type": LATE_PRICE_OBSERVED},
    ],
)
def test_the_reader_of_events_finds_what_is_not_of_the_schema(body: dict[str, Any]) -> None:
    published.check(NewMessage(type=PRICE_CHANGED, key="wn_1", body=BODY))
    with pytest.raises(jsonschema_rs.ValidationError):
        published.check(NewMessage(type=PRICE_CHANGED, key="wn_1", body=body))
    with pytest.raises(AssertionError, match="has no schema"):
        published.check(NewMessage(type="wine.renamed", key="wn_1", body=body))


# --- Releases --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", MESSAGES)
def test_the_schema_is_released_or_the_failure_says_what_changed_and_what_to_do(type_: str) -> None:
    last, now = released(type_)[-1], json.loads(json.dumps(MESSAGES[type_]))
    told = [f"{'BREAKING' if change.breaking else 'compatible'}: {change.words}" for change in changes(last, now)]
    breaks = any(change.breaking for change in changes(last, now))
    major, minor = version_of(last)
    advice = (
        f"{type_} is not as released in {major}.{minor}. "
        f"Give it version {f'{major + 1}.0' if breaks else f'{major}.{minor + 1}'} "
        "and run `python -m winecellar.event_schemas`. " + "; ".join(told or ["only words changed"])
    )
    assert now == last, advice


@pytest.mark.parametrize("type_", MESSAGES)
def test_no_release_breaks_what_the_one_before_promised_unless_its_first_number_says_so(type_: str) -> None:
    releases = released(type_)
    for old, new in pairwise(releases):
        broken = [change.words for change in changes(old, new) if change.breaking]
        assert not broken or version_of(new)[0] > version_of(old)[0], f"{type_} {new['x-version']} breaks: {broken}"


def test_a_released_file_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(release(tmp_path)) == len(MESSAGES)
    assert release(tmp_path) == []
    changed = copy.deepcopy(MESSAGES)
    changed[PRICE_CHANGED]["properties"]["wine_id"]["maxLength"] = 41
    monkeypatch.setattr(event_schemas, "MESSAGES", changed)
    with pytest.raises(ValueError, match=r"wine\.price_changed 1\.1 is released and differs"):
        release(tmp_path)
    changed[PRICE_CHANGED]["x-version"] = "1.2"
    assert [path.name for path in release(tmp_path)] == ["1.2.json"]
    assert [schema["x-version"] for schema in released(PRICE_CHANGED, tmp_path)] == ["1.1", "1.2"]


def changed(**fields: dict[str, Any] | None) -> dict[str, Any]:
    """The schema with these keywords of its fields changed, None being gone; a field None is gone altogether."""
    schema = copy.deepcopy(MESSAGES[PRICE_CHANGED])
    for name, keywords in fields.items():
        if keywords is None:
            del schema["properties"][name]
            continue
        field = {**schema["properties"].get(name, {"x-stability": "convenience"}), **keywords}
        schema["properties"][name] = {key: value for key, value in field.items() if value is not None}
    schema["required"] = [
        name
        for name, field in schema["properties"].items()
        if not field.get("optional") and (field["x-stability"] == "contract" or field.get("x-always"))
    ]
    return schema


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"wine_id": {"description": "Other words."}}, []),
        ({"vineyard": {"type": "string"}}, [Change("vineyard is new", breaking=False)]),
        ({"wine_name": None}, [Change("wine_name is gone", breaking=False)]),
        ({"wine_id": None}, [Change("wine_id is gone", breaking=True)]),
        ({"currency": None}, [Change("currency is gone", breaking=True)]),
        (
            {"currency": {"x-always": None}},
            [Change("currency may be missing", breaking=True)],
        ),
        (
            {"wine_name": {"x-stability": "contract"}},
            [
                Change("wine_name is always there", breaking=False),
                Change("wine_name is contract, no longer convenience", breaking=False),
            ],
        ),
        (
            {"wine_id": {"x-stability": "convenience", "x-always": True}},
            [Change("wine_id is convenience, no longer contract", breaking=True)],
        ),
        (
            {"wine_id": {"maxLength": 41}},
            [Change("wine_id: maxLength was 40 and is 41, which lets more through", breaking=True)],
        ),
        ({"wine_id": {"maxLength": 39}}, [Change("wine_id: maxLength was 40 and is 39", breaking=False)]),
        (
            {"wine_id": {"maxLength": None}},
            [Change("wine_id: maxLength was 40 and is None, which lets more through", breaking=True)],
        ),
        ({"wine_id": {"pattern": "^wn_"}}, [Change("wine_id: pattern was None and is ^wn_", breaking=False)]),
        (
            {"new_price_usd": {"type": ["number", "null"]}},
            [
                Change(
                    "new_price_usd: type was number and is ['number', 'null'], which lets more through", breaking=True
                )
            ],
        ),
        ({"new_price_usd": {"type": "integer"}}, [Change("new_price_usd: type was number and is integer", False)]),
        (
            {"new_price_usd": {"exclusiveMinimum": None, "minimum": 0}},
            [
                Change("new_price_usd: exclusiveMinimum was 0 and is None, which lets more through", breaking=True),
                Change("new_price_usd: minimum was None and is 0", breaking=False),
            ],
        ),
        (
            {"currency": {"const": "EUR"}},
            [Change("currency: const was USD and is EUR, which lets more through", breaking=True)],
        ),
        (
            {"wine_name": {"type": ["string", "null"]}},
            [Change("wine_name: type was string and is ['string', 'null'], which lets more through", breaking=False)],
        ),
    ],
    ids=lambda value: json.dumps(value)[:50] if isinstance(value, dict) else "",
)
def test_what_a_change_means_for_readers(fields: dict[str, Any], expected: list[Change]) -> None:
    assert changes(MESSAGES[PRICE_CHANGED], changed(**fields)) == expected
