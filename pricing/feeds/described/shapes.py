"""The shapes of what the feeds take and answer, as JSON Schema, made from the constants that check requests.

A schema says what it can; the rest is in its words (a calendar has no 30 February, a text must be printable). Tests
hold these shapes against the adapters, value by value, and against every answer of the feeds' tests.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from pricing.contract import CURRENCIES, LARGEST_NATIVE_PRICE, LARGEST_PRICE, PRICE_CURRENCY, TAXES, TIME_PATTERN
from pricing.feeds import canonical, cloudevents, intake, shop_intake
from pricing.feeds.described import catalogue_shapes
from pricing.feeds.refusals import REFUSALS, UNREADABLE
from pricing.listings import Kept
from pricing.rules import Verdict

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}


def _ref(name: str, words: str = "") -> Schema:
    told = {"description": words} if words else {}
    return {**told, "$ref": f"#/components/schemas/{name}"}


CURRENCY: Schema = {"description": "The money of ISO 4217, by its code.", "enum": sorted(CURRENCIES)}
_OBSERVATION_FIELDS: dict[str, Schema] = {
    "wine_id": {
        "description": "Our id of the wine.",
        "type": "string",
        "pattern": f"^{canonical.WINE_ID_PATTERN}$",
    },
    "price": {
        "description": f"Above 0 and at most {LARGEST_PRICE}, in other money than {PRICE_CURRENCY} "
        f"{LARGEST_NATIVE_PRICE}, with at most two decimals, never rounded; text or a number. As a number it is read "
        "as it is written: no exponent, and no third decimal, not even a zero.",
        "anyOf": [
            {"type": "string", "pattern": f"^{canonical.PRICE_PATTERN}$", "not": {"pattern": "^[0.]+$"}},
            {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": float(LARGEST_NATIVE_PRICE),
                "multipleOf": 0.01,
            },
        ],
    },
    "currency": _ref("Currency", "The money that the price is in."),
    "occurred_at": {
        "description": "Since when that is the price: RFC 3339 with its offset, not before "
        f"{settings.FEED_EARLIEST}, and not more than {settings.FEED_CLOCK_TOLERANCE.total_seconds() / 60:g} minutes "
        "ahead of our clock.",
        "type": "string",
        "pattern": TIME_PATTERN,
    },
    "tax": {
        "description": "Whether the price has value added tax in it, shown with your offer; if you do not say it, what "
        "you told us of all your prices.",
        "anyOf": [{"enum": list(TAXES)}, {"type": "null"}],
    },
    "withdrawn": {
        "description": "True, and no price: you offer the wine no longer. It is back with the next price.",
        "type": "boolean",
    },
    "merchant_id": {"description": "If sent, the merchant whom the key or signature belongs to.", "type": "string"},
}
_DELIVERY_ID: Schema = {
    "description": "Your own id of this request, printable, new for each new one. Sent again, it gets the same answer.",
    "type": "string",
    "minLength": 1,
    "maxLength": canonical.LONGEST_DELIVERY_ID,
}
_PRICED = ["price", "currency"]
_WITHDRAWN: Schema = {
    "required": ["withdrawn"],
    "properties": {"withdrawn": {"const": True}},
    "not": {"required": ["price"]},
}
# The limit of a price is another in dollars than in other money.
_WHOLE_DIGITS = len(str(int(LARGEST_PRICE)))
_LIMITED: list[Schema] = [
    {
        "required": _PRICED,
        "properties": {
            "withdrawn": {"const": False},
            "currency": {"const": PRICE_CURRENCY},
            "price": {
                "anyOf": [
                    {"type": "string", "pattern": rf"^[0-9]{{1,{_WHOLE_DIGITS}}}(\.[0-9]{{1,2}})?$"},
                    {"type": "number", "maximum": float(LARGEST_PRICE)},
                ]
            },
        },
    },
    {
        "required": _PRICED,
        "properties": {"withdrawn": {"const": False}, "currency": {"not": {"const": PRICE_CURRENCY}}},
    },
    _WITHDRAWN,
]

OBSERVATION: Schema = {
    "description": "At this time this wine costs so much, or is offered no longer. Fields that we do not know are "
    "ignored, and counted.",
    "type": "object",
    "required": ["wine_id", "occurred_at"],
    "properties": _OBSERVATION_FIELDS,
    "anyOf": _LIMITED,
}
ONE: Schema = {
    "description": "One observation.",
    "type": "object",
    "required": OBSERVATION["required"],
    "properties": {**_OBSERVATION_FIELDS, "delivery_id": _DELIVERY_ID},
    "anyOf": _LIMITED,
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
    "not": {"anyOf": [{"required": [name]} for name in _OBSERVATION_FIELDS if name != "merchant_id"]},
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
                {
                    "type": "object",
                    "required": ["wine_id"],
                    "properties": {**ONE["properties"]},
                    "anyOf": _LIMITED,
                    "not": ONE["not"],
                },
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
_SHOP_PRICE: Schema = {
    "description": "In the merchant's currency; empty, null or 0 is no price.",
    "type": ["string", "number", "null"],
}
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
                    "price": _SHOP_PRICE,
                    "barcode": {"type": ["string", "null"]},
                    "inventory_management": {
                        "description": "If it is not null, the stock is counted.",
                        "type": ["string", "null"],
                    },
                    "inventory_policy": {
                        "description": "`deny`: what is counted and not there is not sold.",
                        "type": ["string", "null"],
                    },
                    "inventory_quantity": {"type": ["integer", "null"]},
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
        "price": _SHOP_PRICE,
        "stock_status": {"description": "`outofstock` is no offer.", "type": "string"},
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
_HELD = Verdict.HELD.value


def _result(name: str, reasons: set[str]) -> Schema:
    return {
        "type": "object",
        "required": [name, "applied"],
        "properties": {
            name: _TEXT,
            "wine_id": _TEXT,
            "applied": {"description": "Whether it is your price now, or withdrawn.", "type": "boolean"},
            "withdrawn": {"description": "You offer it no longer, and we have told so.", "const": True},
            "returned": {"description": "It was withdrawn, and is back at the price it had.", "const": True},
            "reason": {"description": "Why it is not.", "enum": sorted(reasons)},
            "held": {"description": "What it waits for: a person, or a rate.", "enum": list(intake.HELD.values())},
            "event_id": {"description": "The event that tells of it.", **_EVENT_ID},
        },
        "if": {"properties": {"applied": {"const": True}}},
        "then": {"not": {"anyOf": [{"required": ["reason"]}, {"required": ["held"]}]}},
        "else": {
            "required": ["reason"],
            "not": {"anyOf": [{"required": ["returned"]}, {"required": ["withdrawn"]}]},
            "if": {"properties": {"reason": {"const": _HELD}}},
            "then": {"required": ["held"]},
            "else": {"not": {"required": ["held"]}},
        },
    }


_REQUEST_ID: Schema = {"description": "Tell us this one when you ask about it.", "type": "string"}
_CODE = "For programs; never changes its meaning."
_FIELD: Schema = {"description": "Item and field, such as `observations[3].price`.", "type": ["string", "null"]}


def _taken(result: str, **more: Schema) -> Schema:
    return {
        "description": "It is stored, with everything that follows from it.",
        "type": "object",
        "required": ["accepted", "duplicate", "results", "event_ids", "request_id"],
        "properties": {
            "accepted": {"description": "How many observations were taken.", "type": "integer", "minimum": 0},
            "duplicate": {"description": "Whether this is the answer of an earlier request.", "type": "boolean"},
            "results": {"description": "In the order of the observations.", "type": "array", "items": _ref(result)},
            "event_ids": {"type": "array", "items": _EVENT_ID},
            **more,
            "request_id": _REQUEST_ID,
        },
    }


TAKEN = _taken("Result", ignored_fields={"description": "Fields we do not know.", "type": "integer", "minimum": 0})
TAKEN["required"].append("ignored_fields")
LISTINGS_TAKEN: Schema = {
    **_taken(
        "ListingResult",
        ignored={"description": "Why nothing of it was looked at.", "const": shop_intake.UNKNOWN_TOPIC},
        unreadable={
            "description": "What we could not read, so that nothing of it was taken. A person here is told.",
            "type": "object",
            "required": ["code", "message", "field"],
            "properties": {
                "code": {"description": _CODE, "enum": list(UNREADABLE)},
                "message": {"description": "For people.", "type": "string"},
                "field": _FIELD,
            },
        },
    ),
    "if": {"anyOf": [{"required": ["ignored"]}, {"required": ["unreadable"]}]},
    "then": {"properties": {"accepted": {"const": 0}}, "not": {"required": ["ignored", "unreadable"]}},
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
                "code": {"description": _CODE, "enum": sorted(REFUSALS)},
                "message": {"description": "For people.", "type": "string"},
                "field": _FIELD,
                "request_id": _REQUEST_ID,
            },
        }
    },
}

SCHEMAS: dict[str, Schema] = {
    "Currency": CURRENCY,
    "Observation": OBSERVATION,
    "One": ONE,
    "Several": SEVERAL,
    "Lines": LINES,
    "CloudEvent": EVENT,
    "CloudEvents": EVENTS,
    "ShopifyProduct": SHOPIFY_PRODUCT,
    "WooCommerceProduct": WOOCOMMERCE_PRODUCT,
    "WooCommercePing": WOOCOMMERCE_PING,
    "Result": _result("wine_id", {*intake.REASONS.values()}),
    "ListingResult": _result("listing", {*intake.REASONS.values(), *(kept.value for kept in Kept)}),
    "Taken": TAKEN,
    "ListingsTaken": LISTINGS_TAKEN,
    "CatalogueFile": catalogue_shapes.FILE,
    "CatalogueTaken": catalogue_shapes.TAKEN,
    "CatalogueReport": catalogue_shapes.REPORT,
    "CatalogueRejection": catalogue_shapes.REJECTION,
    "Nothing": {"description": "Nothing more.", "type": "object", "maxProperties": 0},
    "Error": ERROR,
}
