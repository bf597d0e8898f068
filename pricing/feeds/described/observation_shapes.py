"""The shapes of observations, in all the forms in which they may come: see shapes.py, which lists them. Pure."""

from __future__ import annotations

from django.conf import settings

from pricing.contract import CURRENCIES, LARGEST_NATIVE_PRICE, LARGEST_PRICE, PRICE_CURRENCY, TAXES, TIME_PATTERN
from pricing.feeds import canonical, cloudevents
from pricing.feeds.described.shape import Schema, ref

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
    "currency": ref("Currency", "The money that the price is in."),
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
            "items": ref("Observation"),
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
    "items": ref("Observation"),
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
                ref("Several"),
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
    "items": ref("CloudEvent"),
}
