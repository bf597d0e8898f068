"""The OpenAPI document and its page say what the code does: addresses, methods, codes, shapes."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.http import Http404
from django.test import Client, RequestFactory
from django.urls import resolve
from django.utils import timezone
from hypothesis import example, given
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator

import pricing
from pricing.feeds import canonical, formats
from pricing.feeds.described import endpoints, shapes
from pricing.feeds.described.openapi import document
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import parse
from pricing.feeds.refusals import REFUSALS, UNREADABLE
from pricing.feeds.urls import urlpatterns
from tests.feeds import described
from tests.feeds.conftest import observation
from tests.pages.html import Page

SOURCES = "\n".join(path.read_text() for path in Path(pricing.__file__).parent.rglob("*.py"))
RAISED = set(re.findall(r'FeedError\(\s*(\d{3}),\s*"([a-z_]+)"', SOURCES))
REFUSED = {code for endpoint in endpoints.ENDPOINTS for code in endpoint.refusals}
NOW = timezone.now()


def paths() -> dict[str, Any]:
    return document()["paths"]


def address(template: str) -> str:
    return template.replace("{merchant_id}", "mch_082").replace("{file_id}", "12")


def test_the_document_is_openapi_3_1() -> None:
    OpenAPIV31SpecValidator(document()).validate()


def test_the_document_is_served_as_it_is_made(client: Client) -> None:
    response = client.get("/feeds/openapi.json")
    assert response["Content-Type"] == "application/json"
    assert json.loads(response.content) == json.loads(json.dumps(document()))


def test_every_code_of_the_source_is_a_refusal_with_that_status_and_the_other_way_round() -> None:
    assert len(RAISED) > 20
    assert {(str(refusal.status), code) for code, refusal in REFUSALS.items()} == RAISED


def test_every_refusal_is_named_at_some_address() -> None:
    assert REFUSED | set(UNREADABLE) == set(REFUSALS)


def test_every_address_of_the_feeds_is_described_and_nothing_else() -> None:
    told = [pattern for pattern in urlpatterns if "v1/" in str(pattern.pattern)]
    reached = {resolve(address(template)).route for template in paths()}
    assert reached == {f"feeds/{str(pattern.pattern).lstrip('^')}" for pattern in told}


@pytest.mark.parametrize("endpoint", endpoints.ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_an_address_takes_the_methods_that_are_described(endpoint: endpoints.Endpoint) -> None:
    match = resolve(address(endpoint.path))
    refused = match.func(RequestFactory().generic("BREW", address(endpoint.path)), *match.args, **match.kwargs)
    assert refused.status_code == 405
    assert set(refused["Allow"].split(", ")) == set(endpoint.methods)


@pytest.mark.parametrize("endpoint", endpoints.ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_what_is_no_id_makes_no_address(endpoint: endpoints.Endpoint) -> None:
    name, pattern = next(
        ((each.name, each.schema["pattern"]) for each in endpoint.parameters if each.place == "path"), ("", "")
    )
    merchants = ("mch_082", "mch_" + "a" * 36, "mch_" + "a" * 37, "mch_", "mch_A", "wn_1", "mch_1.2")
    for text in (*merchants, "1", "9" * 18, "9" * 19, "-1", "1.5", "٢"):
        if not name:
            continue
        try:
            resolve(endpoint.path.replace("{" + name + "}", text))
        except Http404:
            assert not re.search(pattern, text)
        else:
            assert re.search(pattern, text)


@pytest.mark.parametrize("endpoint", endpoints.ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_every_example_is_of_its_shape(endpoint: endpoints.Endpoint) -> None:
    for media_type, body in endpoint.bodies.items():
        if body.example is None:
            continue
        pointer = f"/paths/{endpoint.path.replace('/', '~1')}/{endpoint.methods[0].lower()}/requestBody/content"
        pointer = pointer.replace("{", "%7B").replace("}", "%7D")
        checker = described.validator(f"{pointer}/{media_type.replace('/', '~1')}/schema")
        checker.validate(body.example)


def test_the_forms_are_those_that_the_code_reads() -> None:
    for template in ("/feeds/v1/price-changes", "/feeds/v1/price-changes/{merchant_id}"):
        assert tuple(paths()[template]["post"]["requestBody"]["content"]) == formats.MEDIA_TYPES


def test_the_fields_are_those_that_the_code_knows() -> None:
    assert set(shapes.SCHEMAS["Observation"]["properties"]) == canonical._OF_AN_OBSERVATION
    assert set(shapes.SCHEMAS["Several"]["properties"]) == canonical._OF_THE_REQUEST


# --- The shape of an observation takes what the code takes, and refuses what it refuses ------------------------


def taken(text: str) -> bool:
    try:
        canonical.adapt(parse(text.encode()), merchant_id="mch_082", now=NOW)
    except FeedError:
        return False
    return True


def of_shape(text: str) -> bool:
    one, several = described.validator("/components/schemas/One"), described.validator("/components/schemas/Several")
    value = json.loads(text)
    return bool(one.is_valid(value)) != bool(several.is_valid(value))


FIELDS = {
    "wine_id": ["wn_1", "wn_" + "a" * 37, "wn_" + "a" * 38, "wn_", "wn_é", "wn_1\n", "WN_1", "", None, 7, [], {}, ...],
    "price": [
        *("154.00", "154", "0.01", "99999999.99", "100000000", "0", "0.00", "00.5", "1.234", "12,50", "-1", "+5", ""),
        *(" 12 ", "1_000", "0x10", "1e2", "١٢", ".5", "5.", "12.50\n", "000", "$12", None, True, [], {}, ...),
        *(154, 154.5, 154.25, 0.01, 99999999.99, 100_000_000, 0, -1, 1.005, 0.001),
    ],
    "currency": ["USD", "usd", "EUR", "JPY", "XXX", "EURO", "", None, 840, ...],
    "occurred_at": [
        *("2026-03-14T09:12:04Z", "2026-03-14t09:12:04.123456789+05:30", "2026-03-14T09:12:04", "2026-03-14"),
        *("2026-03-14T24:00:00Z", "2026-03-14T09:12:60Z", "2026-03-14T09:12:04+25:00", "2026-W11-6T09:12:04Z", ""),
        *("2026-03-14T09:12:04Z\n", "2026-03-14 09:12:04Z", "٢026-03-14T09:12:04Z", None, 7, True, ...),
    ],
    "tax": ["included", "excluded", "", "Included", "net", None, True, 7, [], ...],
    "withdrawn": [True, False, None, "true", 1, [], ...],
    "merchant_id": ["mch_082", 82, None, [], ...],
    "delivery_id": ["d-1", "d" * 200, "d" * 201, "", None, 7, [], ...],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in FIELDS.items() for value in values])
def test_the_shape_takes_a_value_if_the_code_does(name: str, value: Any) -> None:
    one = json.dumps(observation(**{name: value}))
    assert of_shape(one) == taken(one)
    if name != "delivery_id":
        several = json.dumps({"observations": [observation(), observation(**{name: value})]})
        assert of_shape(several) == taken(several)


GONE = [
    {},
    {"price": "154.00"},
    {"price": None},
    {"currency": "USD"},
    {"currency": "EURO"},
    {"currency": None},
    {"tax": "included"},
    {"tax": "some"},
    {"wine_id": "wn_"},
    {"occurred_at": "yesterday"},
    {"withdrawn": False, "currency": "USD"},
]


@pytest.mark.parametrize("more", GONE, ids=str)
def test_the_shape_takes_a_withdrawal_if_the_code_does(more: dict[str, Any]) -> None:
    gone = {"wine_id": "wn_1", "withdrawn": True, "occurred_at": "2026-03-14T09:12:04Z", **more}
    one, several = json.dumps(gone), json.dumps({"observations": [gone]})
    assert (of_shape(one), of_shape(several)) == (taken(one), taken(several))


LARGE = [
    *("99999999.99", "99999999.9", "100000000", "100000000.00", "999999999999.99", "1000000000000", "0099"),
    *(99999999.99, 100_000_000, 999999999999.99, 1_000_000_000_000),
]


@pytest.mark.parametrize("price", LARGE)
@pytest.mark.parametrize("currency", ["USD", "EUR", "XXX", None])
def test_the_shape_knows_the_largest_price_in_dollars_and_in_other_money(price: Any, currency: Any) -> None:
    one = json.dumps(observation(price, currency=currency))
    assert of_shape(one) == taken(one)
    data = {name: value for name, value in observation(price, currency=currency).items() if name != "occurred_at"}
    event = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": data}
    checker = described.validator("/components/schemas/CloudEvent")
    assert checker.is_valid(json.loads(json.dumps(event))) == taken(one)


@pytest.mark.parametrize(
    "document_",
    [
        [],
        None,
        "x",
        {},
        {"observations": []},
        {"observations": {}},
        {"observations": [[]]},
        {"observations": [observation()] * 1_000},
        {"observations": [observation()] * 1_001},
        {"observations": [observation()], "price": "1"},
        {"observations": [observation()], "delivery_id": "d-1", "unknown": 1},
        observation(unknown=1),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_the_shape_takes_a_body_if_the_code_does(document_: Any) -> None:
    text = json.dumps(document_)
    assert of_shape(text) == taken(text)


@given(st.integers(min_value=1, max_value=10**10 - 1))
@example(7)
@example(15_407)
@example(9_999_999_999)
def test_any_price_in_cents_is_a_price_as_text_and_as_a_number(cents: int) -> None:
    price = Decimal(cents).scaleb(-2)
    for text in (f'"{price}"', f"{price}"):
        body = json.dumps(observation("PRICE")).replace('"PRICE"', text)
        assert taken(body)
        assert of_shape(body)


@given(st.integers(min_value=1, max_value=10**14 - 1))
@example(99_999_999_999_999)
@example(10_000_000_000)
def test_any_price_in_cents_is_a_price_in_other_money(cents: int) -> None:
    price = Decimal(cents).scaleb(-2)
    for text in (f'"{price}"', f"{price}"):
        body = json.dumps(observation("PRICE", currency="VND")).replace('"PRICE"', text)
        assert taken(body)
        assert of_shape(body)


# --- The reader of answers, and the page -----------------------------------------------------------------------

ANSWER = {
    "accepted": 1,
    "duplicate": False,
    "results": [{"wine_id": "wn_1", "applied": True, "event_id": "evt_06h2kerhks4pb66039q4k9qhg4"}],
    "event_ids": ["evt_06h2kerhks4pb66039q4k9qhg4"],
    "ignored_fields": 0,
    "request_id": "req_1",
}
HEADERS = {"content-type": "application/json", "x-request-id": "req_1", "cache-control": "no-store"}
PRICES, SHOP, FILES = "/feeds/v1/price-changes", "/feeds/v1/shopify/mch_082", "/feeds/v1/catalogues"
EMPTY = {"accepted": 0, "duplicate": False, "results": [], "event_ids": [], "request_id": "req_1"}
UNREAD = {"code": "invalid_product", "message": "…", "field": None}


def result(**fields: Any) -> dict[str, Any]:
    return {**ANSWER, "results": [{"wine_id": "wn_1", **fields}]}


def refusal(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "…", "field": None, "request_id": "req_1"}}


@pytest.mark.parametrize(
    ("method", "path", "status", "headers", "body"),
    [
        ("POST", PRICES, 202, HEADERS, {**ANSWER, "more": 1}),
        ("POST", PRICES, 202, HEADERS, {name: value for name, value in ANSWER.items() if name != "duplicate"}),
        ("POST", PRICES, 202, HEADERS, {**ANSWER, "results": [{"wine_id": "wn_1", "applied": False}]}),
        ("POST", PRICES, 202, {**HEADERS, "content-type": "text/html"}, ANSWER),
        ("POST", PRICES, 202, {"content-type": "application/json"}, ANSWER),
        ("POST", PRICES, 200, HEADERS, ANSWER),
        ("POST", PRICES, 500, HEADERS, ANSWER),
        ("POST", PRICES, 422, HEADERS, refusal("no_such_code")),
        ("POST", PRICES, 422, HEADERS, refusal("invalid_product")),  # a shop's, not of this address
        ("POST", PRICES, 422, HEADERS, refusal("invalid_json")),  # of another status
        ("POST", PRICES, 503, HEADERS, refusal("unavailable")),  # and no Retry-After
        ("GET", PRICES, 200, HEADERS, ANSWER),
        ("POST", SHOP, 202, HEADERS, ANSWER),  # its results name listings
        ("POST", SHOP, 422, HEADERS, refusal("invalid_product")),  # is answered with 202
        ("POST", SHOP, 202, HEADERS, {**EMPTY, "ignored": "no product"}),
        ("POST", SHOP, 202, HEADERS, {**EMPTY, "unreadable": {**UNREAD, "code": "unknown_wine"}}),
        ("POST", SHOP, 202, HEADERS, {**EMPTY, "unreadable": {**UNREAD, "more": 1}}),
        ("POST", SHOP, 202, HEADERS, {**EMPTY, "unreadable": UNREAD, "ignored": "unknown topic"}),
        ("POST", PRICES, 202, HEADERS, result(applied=False, reason="no rate")),
        ("POST", PRICES, 202, HEADERS, result(applied=False, reason="held")),
        ("POST", PRICES, 202, HEADERS, result(applied=False, reason="stale", held="suspect")),
        ("POST", PRICES, 202, HEADERS, result(applied=False, reason="held", held="no money")),
        ("POST", PRICES, 202, HEADERS, result(applied=False, reason="returned")),
        ("POST", PRICES, 202, HEADERS, result(applied=True, reason="unchanged")),
        ("POST", PRICES, 202, HEADERS, result(applied=False, reason="stale", returned=True)),
        ("PUT", FILES, 202, HEADERS, ANSWER),
        ("GET", f"{FILES}/12", 202, HEADERS, ANSWER),
        ("GET", f"{FILES}/12", 404, HEADERS, refusal("unknown_wine")),
    ],
)
def test_the_reader_of_answers_finds_what_is_not_described(
    method: str, path: str, status: int, headers: dict[str, str], body: Any
) -> None:
    described.check("POST", PRICES, 202, HEADERS, ANSWER)
    described.check("POST", PRICES, 422, HEADERS, refusal("invalid_price"))
    described.check("POST", PRICES, 202, HEADERS, result(applied=True, returned=True))
    described.check("POST", PRICES, 202, HEADERS, result(applied=False, reason="held", held="no rate"))
    described.check("POST", SHOP, 202, HEADERS, {**EMPTY, "unreadable": UNREAD})
    described.check("POST", SHOP, 202, HEADERS, {**EMPTY, "ignored": "unknown topic"})
    described.check("GET", f"{FILES}/12", 404, HEADERS, refusal("unknown_file"))
    with pytest.raises((AssertionError, jsonschema_rs.ValidationError)):
        described.check(method, path, status, headers, body)


def test_the_page_is_well_formed_and_says_all_that_the_document_says(client: Client, db: None) -> None:
    response = client.get("/feeds/")
    page = Page(response.content.decode())
    assert page.faults == []
    assert "script-src 'self'" in response["Content-Security-Policy"]
    words = page.words
    for template, operations in paths().items():
        for method, operation in operations.items():
            assert f"{method.upper()} {template}" in words
            for parameter in operation["parameters"]:
                assert parameter["name"] in words
            for media_type in operation.get("requestBody", {"content": {}})["content"]:
                assert media_type in words
    for code, told in REFUSALS.items():
        for status in [told.status] * (code in REFUSED) + [202] * (code in UNREADABLE):
            assert f"{code} {status} {told.meaning.replace('`', '')}" in words
    for name, schema in document()["components"]["schemas"].items():
        assert {"id": f"shape-{name}"} in page.all("h3")
        for field in schema.get("properties", {}):
            assert field in words


def test_every_page_leads_to_it(client: Client, db: None) -> None:
    assert {"href": "/feeds/"} in Page(client.get("/").content.decode()).all("a")
