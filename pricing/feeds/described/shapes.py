"""The shapes of what the feeds take and answer, as JSON Schema, made from the constants that check requests.

A schema says what it can; the rest is in its words (a calendar has no 30 February, a text must be printable). Tests
hold these shapes against the adapters, value by value, and against every answer of the feeds' tests.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from pricing.contract import LARGEST_PRICE, PRICE_CURRENCY, TIME_PATTERN
from pricing.feeds import canonical, cloudevents
from pricing.feeds.refusals import REFUSALS
from pricing.listings import Kept
from pricing.rules import Verdict

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_OBSERVATION_FIELDS: dict[str, Schema] = {
    "wine_id": {
        "description": "Our id of the wine.",
        "type": "string",
        "pattern": f"^{canonical.WINE_ID_PATTERN}$",
    },
    "price": {
        "description": "Above 0, with at most two decimals, never rounded; text or a number. As a number it is read "
        "as it is written: no exponent, and no third decimal, not even a zero.",
        "anyOf": [
            {"type": "string", "pattern": f"^{canonical.PRICE_PATTERN}$", "not": {"pattern": "^[0.]+$"}},
            {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": float(LARGEST_PRICE),
                "multipleOf": 0.01,
            },
        ],
    },
    "currency": {"description": "The money that the price is in: an ISO 4217 code.", "const": PRICE_CURRENCY},
    "occurred_at": {
        "description": "Since when that is the price: RFC 3339 with its offset, not before "
        f"{settings.FEED_EARLIEST}, and not more than {settings.FEED_CLOCK_TOLERANCE.total_seconds() / 60:g} minutes "
        "ahead of our clock.",
        "type": "string",
        "pattern": TIME_PATTERN,
    },
    "merchant_id": {"description": "If sent, the merchant whom the key or signature belongs to.", "type": "string"},
}
_DELIVERY_ID: Schema = {
    "description": "Your own id of this request, printable, new for each new one. Sent again, it gets the same answer.",
    "type": "string",
    "minLength": 1,
    "maxLength": canonical.LONGEST_DELIVERY_ID,
}
_PRICED = ["wine_id", "price", "currency"]


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


OBSERVATION: Schema = {
    "description": "At this time this wine costs so much. Fields that we do not know are ignored, and counted.",
    "type": "object",
    "required": [*_PRICED, "occurred_at"],
    "properties": _OBSERVATION_FIELDS,
}
ONE: Schema = {
    "description": "One observation.",
    "type": "object",
    "required": OBSERVATION["required"],
    "properties": {**_OBSERVATION_FIELDS, "delivery_id": _DELIVERY_ID},
    "not": {"required": ["observations"]},
}
SEVERAL: Schema = {
    "description": "Several observations: all are taken, or none.",
    "type": "object",
    "required": ["observations"],
    "properties": {
        "observations": {
            "type": "array",
            "minItems": 1,
            "maxItems": settings.FEED_MAX_BATCH,
            "items": _ref("Observation"),
        },
        "merchant_id": _OBSERVATION_FIELDS["merchant_id"],
        "delivery_id": _DELIVERY_ID,
    },
    "not": {"anyOf": [{"required": [name]} for name in OBSERVATION["required"]]},
}
LINES: Schema = {
    "description": "One observation in each line.",
    "type": "array",
    "minItems": 1,
    "maxItems": settings.FEED_MAX_BATCH,
    "items": _ref("Observation"),
}
_ATTRIBUTE: Schema = {"type": "string", "minLength": 1, "maxLength": cloudevents.LONGEST_TEXT}
EVENT: Schema = {
    "description": "CloudEvents 1.0. The event is known by `source` and `id` together: sent again, in whatever form "
    "or batch, it gets the same answer.",
    "type": "object",
    "required": ["specversion", "id", "source", "type"],
    "properties": {
        "specversion": {"const": "1.0"},
        "id": {"type": "string", "minLength": 1, "maxLength": canonical.LONGEST_DELIVERY_ID},
        "source": _ATTRIBUTE,
        "type": {"description": "Yours to choose.", **_ATTRIBUTE},
        "time": {
            "description": "The `occurred_at` of an observation without its own.",
            "anyOf": [{"type": "string", "pattern": TIME_PATTERN}, {"type": "null"}],
        },
        "datacontenttype": {"const": "application/json"},
        "data": {
            "anyOf": [
                _ref("Several"),
                {"type": "object", "required": _PRICED, "properties": {**ONE["properties"]}, "not": ONE["not"]},
            ]
        },
        "data_base64": {"description": "The same as JSON, in base64.", "type": "string", "contentEncoding": "base64"},
    },
    "oneOf": [{"required": ["data"]}, {"required": ["data_base64"]}],
}
EVENTS: Schema = {
    "description": f"Several events, with at most {settings.FEED_MAX_BATCH:,} observations in all.",
    "type": "array",
    "minItems": 1,
    "maxItems": settings.FEED_MAX_BATCH,
    "items": _ref("CloudEvent"),
}

# Shop systems send what they send; only what we read of it is said here.
SHOPIFY_PRODUCT: Schema = {
    "description": "A product as Shopify sends it, with its variants; when it is deleted, with its id alone.",
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "title": {"type": ["string", "null"]},
        "status": {"description": "Only `active` ones have prices.", "type": "string"},
        "updated_at": {"type": "string", "pattern": TIME_PATTERN},
        "variants": {
            "type": "array",
            "maxItems": settings.FEED_MAX_BATCH,
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "integer", "minimum": 0},
                    "price": {"type": ["string", "number", "null"]},
                    "barcode": {"type": ["string", "null"]},
                    **{f"option{number}": {"type": ["string", "null"]} for number in (1, 2, 3)},
                },
            },
        },
    },
}
WOOCOMMERCE_PRODUCT: Schema = {
    "description": "A product or variation as WooCommerce sends it; when it is deleted, with its id alone.",
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "name": {"type": ["string", "null"]},
        "type": {"description": "`simple` or `variation`, if it has a price of its own.", "type": "string"},
        "status": {"description": "Only what is published has a price.", "type": "string"},
        "price": {"type": ["string", "number", "null"]},
        "date_modified_gmt": {"type": "string"},
        "global_unique_id": {"type": ["string", "null"]},
        "attributes": {
            "type": ["array", "null"],
            "items": {"type": "object", "properties": {"option": {"type": ["string", "null"]}}},
        },
    },
}
WOOCOMMERCE_PING: Schema = {
    "description": "What WooCommerce sends, unsigned, when a webhook is saved.",
    "type": "object",
    "required": ["webhook_id"],
    "properties": {"webhook_id": {"type": "string", "pattern": "^[0-9]{1,20}$"}},
}

_EVENT_ID: Schema = {"type": "string", "pattern": "^evt_[0-9a-z]{26}$"}
_REASONS = sorted({verdict.value for verdict in Verdict} - {Verdict.APPLIED.value})


def _result(name: str, reasons: list[str]) -> Schema:
    return {
        "type": "object",
        "required": [name, "applied"],
        "properties": {
            name: _TEXT,
            "wine_id": _TEXT,
            "applied": {"description": "Whether it is your price now.", "type": "boolean"},
            "reason": {"description": "Why it is not.", "enum": reasons},
            "held": {"description": "Why a person looks at it.", "const": "suspect"},
            "event_id": {"description": "The event that tells of it.", **_EVENT_ID},
        },
        "if": {"properties": {"applied": {"const": True}}},
        "then": {"not": {"required": ["reason"]}},
        "else": {"required": ["reason"]},
    }


def _taken(result: str, *more: str) -> Schema:
    return {
        "description": "It is stored, with everything that follows from it.",
        "type": "object",
        "required": ["accepted", "duplicate", "results", "event_ids", "request_id", *more],
        "properties": {
            "accepted": {"description": "How many observations were taken.", "type": "integer", "minimum": 0},
            "duplicate": {"description": "Whether this is the answer of an earlier request.", "type": "boolean"},
            "results": {"description": "In the order of the observations.", "type": "array", "items": _ref(result)},
            "event_ids": {"type": "array", "items": _EVENT_ID},
            **{name: {"description": "Fields we do not know.", "type": "integer", "minimum": 0} for name in more},
            "request_id": {"description": "Tell us this one when you ask about it.", "type": "string"},
        },
    }


ERROR: Schema = {
    "description": "Why the request was refused. Nothing of it was stored.",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "field", "request_id"],
            "properties": {
                "code": {"description": "For programs; never changes its meaning.", "enum": sorted(REFUSALS)},
                "message": {"description": "For people.", "type": "string"},
                "field": {
                    "description": "Item and field, such as `observations[3].price`.",
                    "type": ["string", "null"],
                },
                "request_id": {"description": "Tell us this one when you ask about it.", "type": "string"},
            },
        }
    },
}

SCHEMAS: dict[str, Schema] = {
    "Observation": OBSERVATION,
    "One": ONE,
    "Several": SEVERAL,
    "Lines": LINES,
    "CloudEvent": EVENT,
    "CloudEvents": EVENTS,
    "ShopifyProduct": SHOPIFY_PRODUCT,
    "WooCommerceProduct": WOOCOMMERCE_PRODUCT,
    "WooCommercePing": WOOCOMMERCE_PING,
    "Result": _result("wine_id", _REASONS),
    "ListingResult": _result("listing", sorted({*_REASONS, *(str(kept) for kept in Kept)})),
    "Taken": _taken("Result", "ignored_fields"),
    "ListingsTaken": _taken("ListingResult"),
    "Nothing": {"description": "Nothing more.", "type": "object", "maxProperties": 0},
    "Error": ERROR,
}
