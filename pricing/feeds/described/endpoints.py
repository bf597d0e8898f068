"""What is at each of the feeds' addresses: one entry for each, from which the OpenAPI document and its page are made.

Guarantee: tests hold every entry against the addresses in urls.py, the methods they take, and each answer that the
feeds' tests get. To add an address: an entry in ENDPOINTS, its shapes in shapes.py, its new codes in refusals.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from pricing.contract import TIME_PATTERN
from pricing.feeds import canonical, cloudevents, formats, shopify, standard_webhooks, woocommerce
from pricing.feeds.described.shapes import Schema

# --- Who may send ----------------------------------------------------------------------------------------------

_MINUTES = f"{settings.FEED_SIGNATURE_TOLERANCE.total_seconds() / 60:g}"
KEY, SIGNED, SHOPIFY, WOOCOMMERCE = "feedKey", "standardWebhooks", "shopify", "woocommerce"
SECURITY: dict[str, Schema] = {
    KEY: {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "wck_<8 letters>_<secret>",
        "description": "Your feed key, never in an address.",
    },
    SIGNED: {
        "type": "apiKey",
        "in": "header",
        "name": "webhook-signature",
        "description": "Standard Webhooks (https://www.standardwebhooks.com): `v1,` and the base64 of HMAC-SHA256 over "
        f"`<webhook-id>.<webhook-timestamp>.<body>`; up to {standard_webhooks.MOST_SIGNATURES} with a space between. "
        "An `Authorization` header, if there is one, counts instead.",
    },
    SHOPIFY: {
        "type": "apiKey",
        "in": "header",
        "name": shopify.SIGNATURE,
        "description": "The base64 of HMAC-SHA256 over the body, as Shopify signs it.",
    },
    WOOCOMMERCE: {
        "type": "apiKey",
        "in": "header",
        "name": woocommerce.SIGNATURE,
        "description": "The base64 of HMAC-SHA256 over the body, as WooCommerce signs it.",
    },
}

# --- What is refused, in the order in which it is checked ------------------------------------------------------

_FIRST = ("https_required", "method_not_allowed")
_LENGTH = ("length_required", "invalid_length", "payload_too_large", "incomplete_body")
_ALLOWED_IN = ("missing_credentials", "invalid_credentials")
_THEN = ("rate_limited", "unsupported_media_type")
_JSON = ("invalid_encoding", "invalid_json", "duplicate_key", "too_deep", "forbidden_character", "expected_object")
_PRICES = ("invalid_price", "invalid_time", "time_out_of_range", "batch_too_large", "invalid_event_id", "id_conflict")
_OBSERVED = ("invalid_observations", "invalid_cloudevent", "invalid_wine_id", "invalid_currency", "unknown_wine")
_ANY = (*_FIRST, *_LENGTH, *_ALLOWED_IN, *_THEN, *_JSON, *_PRICES, "unavailable")


@dataclass(frozen=True)
class Parameter:
    """A header, or a part of the path."""

    name: str
    description: str
    schema: Schema
    place: str = "header"
    required: bool = False


@dataclass(frozen=True)
class Body:
    """What may come under one media type: the name of a schema, or of several, and an example."""

    schemas: tuple[str, ...]
    example: Any


@dataclass(frozen=True)
class Endpoint:
    """`credentials`: any one of them lets in. `answers`: status → name of a schema and words. `refusals`: codes."""

    name: str
    path: str
    summary: str
    description: str
    credentials: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    bodies: Mapping[str, Body]
    answers: Mapping[int, tuple[str, str]]
    refusals: tuple[str, ...]
    methods: tuple[str, ...] = ("POST",)
    unsigned_bodies: frozenset[str] = field(default_factory=frozenset)  # media types that need no credentials


_TIME: Schema = {"type": "string", "pattern": TIME_PATTERN}
_PRINTABLE: Schema = {"type": "string", "minLength": 1, "maxLength": canonical.LONGEST_DELIVERY_ID}
_TRACE = Parameter(
    "traceparent", "W3C Trace Context; stays with the price all the way to the mail.", {"type": "string"}
)
_MERCHANT = Parameter(
    "merchant_id", "Your merchant id.", {"type": "string", "pattern": "^mch_[a-z0-9_]{1,36}$"}, "path", required=True
)
_IDEMPOTENCY = Parameter(
    "Idempotency-Key", "Your own id of this request; counts before any id in the body.", _PRINTABLE
)
_BINARY = tuple(
    Parameter(
        f"{cloudevents.HEADER}{name}", f"CloudEvents 1.0 in binary form: the event's `{name}`.", {"type": "string"}
    )
    for name in ("specversion", "id", "source", "type", "time")
)
_SIGNED_HEADERS = (
    Parameter("webhook-id", "Of a signed request: its id, the same on each try.", _PRINTABLE),
    Parameter(
        "webhook-timestamp",
        f"Of a signed request: when it was signed, in seconds since 1970; at most {_MINUTES} minutes from our clock.",
        {"type": "string", "pattern": "^[0-9]{1,12}$"},
    ),
)

_PRICE = {"wine_id": "wn_4417", "price": "154.00", "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z"}
_OTHER = {**_PRICE, "wine_id": "wn_4418", "price": 21.5}
_EVENT = {"specversion": "1.0", "id": "7f9c1e52", "source": "https://shop.example", "type": "price", "data": _PRICE}
_CANONICAL = {
    formats.JSON: Body(("One", "Several"), _PRICE),
    formats.NDJSON: Body(("Lines",), [_PRICE, _OTHER]),
    formats.CLOUDEVENT: Body(("CloudEvent",), _EVENT),
    formats.CLOUDEVENTS: Body(("CloudEvents",), [_EVENT, {**_EVENT, "id": "7f9c1e53", "data": _OTHER}]),
}
_TAKEN = {202: ("Taken", "Taken, and safely stored.")}
_LISTED = {202: ("ListingsTaken", "Taken, and safely stored; a result for each variant.")}


def _of_shop(adapter: Any, delivery: str, *more: Parameter) -> tuple[Parameter, ...]:
    topics = ", ".join(f"`{topic}`" for topic in sorted({*adapter.CHANGED, adapter.DELETED}))
    return (
        _MERCHANT,
        Parameter(
            adapter.TOPIC, f"One of {topics}.", {"enum": sorted({*adapter.CHANGED, adapter.DELETED})}, required=True
        ),
        Parameter(adapter.DELIVERY, delivery, _PRINTABLE, required=True),
        *more,
        _TRACE,
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="price-changes",
        path="/feeds/v1/price-changes",
        summary="Send prices with a key",
        description="One observation or several, in any of four forms. All are taken, or none.",
        credentials=(KEY,),
        parameters=(_IDEMPOTENCY, _TRACE, *_BINARY),
        bodies=_CANONICAL,
        answers=_TAKEN,
        refusals=(*_ANY, *_OBSERVED, "key_in_address", "forbidden_feed"),
    ),
    Endpoint(
        name="price-changes-of-merchant",
        path="/feeds/v1/price-changes/{merchant_id}",
        summary="Send prices, signed",
        description="The same; the address says whose signature to expect. A key is taken here too.",
        credentials=(KEY, SIGNED),
        parameters=(_MERCHANT, *_SIGNED_HEADERS, _IDEMPOTENCY, _TRACE, *_BINARY),
        bodies=_CANONICAL,
        answers=_TAKEN,
        refusals=(*_ANY, *_OBSERVED, "key_in_address", "forbidden_feed", "stale_or_invalid_timestamp"),
    ),
    Endpoint(
        name="shopify",
        path="/feeds/v1/shopify/{merchant_id}",
        summary="Webhooks of a Shopify shop",
        description="We find the wine by its bar code, or by name, vintage and bottle size.",
        credentials=(SHOPIFY,),
        parameters=_of_shop(
            shopify,
            "Shopify's id of the webhook.",
            Parameter(shopify.TRIGGERED, "When it was triggered; else `updated_at` counts.", _TIME),
        ),
        bodies={
            formats.JSON: Body(
                ("ShopifyProduct",),
                {
                    "id": 7,
                    "title": "Ch. Montrose 2016 75cl",
                    "updated_at": "2026-03-14T05:12:04-04:00",
                    "variants": [{"id": 11, "price": "154.00", "option1": "Default Title"}],
                },
            )
        },
        answers=_LISTED,
        refusals=(*_ANY, "invalid_product", "unknown_topic"),
    ),
    Endpoint(
        name="woocommerce",
        path="/feeds/v1/woocommerce/{merchant_id}",
        summary="Webhooks of a WooCommerce shop",
        description="We find the wine by its number, or by name, vintage and bottle size. A saved webhook's ping is "
        "answered with 200.",
        credentials=(WOOCOMMERCE,),
        parameters=_of_shop(woocommerce, "WooCommerce's id of the delivery."),
        bodies={
            formats.JSON: Body(
                ("WooCommerceProduct",),
                {
                    "id": 794,
                    "name": "Ch. Montrose 2016 75cl",
                    "type": "simple",
                    "price": "154.00",
                    "date_modified_gmt": "2026-03-14T09:12:04",
                },
            ),
            "application/x-www-form-urlencoded": Body(("WooCommercePing",), {"webhook_id": "12"}),
        },
        answers={200: ("Nothing", "The ping was heard."), **_LISTED},
        refusals=(*_ANY, "invalid_product", "unknown_topic"),
        unsigned_bodies=frozenset({"application/x-www-form-urlencoded"}),
    ),
)
