"""What pricing publishes as JSON Schema (2020-12), for consumers: what is contract, what is convenience. Pure.

`x-stability: contract` marks what consumers may rely on; it changes only with the version's first number. `convenience`
may go missing and may change with the second. Made from the constants that events.py reads events by; tests hold every
event that the code publishes against them, and each version against the one before (docs/schemas/).
"""

from __future__ import annotations

from typing import Any

from pricing.contract import CURRENCIES, LARGEST_NATIVE_PRICE, LARGEST_PRICE, PRICE_CURRENCY, TIME_PATTERN
from pricing.events import (
    LATE_PRICE_OBSERVED,
    LONGEST_ID,
    OFFER_RETURNED,
    OFFER_WITHDRAWN,
    PRICE_CHANGED,
    REFRESH_CATALOGUE,
    WINE_DESCRIBED,
)

Schema = dict[str, Any]
CONTRACT, CONVENIENCE = "contract", "convenience"

_PRICE: Schema = {
    "type": "number",
    "exclusiveMinimum": 0,
    "maximum": float(LARGEST_PRICE),
    "multipleOf": 0.01,
}
_NATIVE_PRICE: Schema = {**_PRICE, "maximum": float(LARGEST_NATIVE_PRICE)}


def event(type_: str, version: str, words: str, fields: dict[str, Schema]) -> Schema:
    """The schema of one message type. What is contract is always there; so is what is marked `always`."""
    always = [name for name, field in fields.items() if field["x-stability"] == CONTRACT or field.get("x-always")]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:winecellar:{type_}:{version}",
        "title": type_,
        "description": f"{words} Ignore fields that you do not know.",
        "x-version": version,
        "type": "object",
        "required": always,
        "properties": {name: {**field} for name, field in fields.items()},
    }


def contract(words: str, **limits: Any) -> Schema:
    return {"x-stability": CONTRACT, "description": words, **limits}


def convenience(words: str, **limits: Any) -> Schema:
    return {"x-stability": CONVENIENCE, "description": words, **limits}


_EVENT_ID = contract(
    "One real change has one id, through every redelivery and redrive: remember it, and handle it once.",
    type="string",
    minLength=1,
)
_WINE_ID = contract(
    "Which wine. Events of one wine come in the order in which they were published.",
    type="string",
    minLength=1,
    maxLength=LONGEST_ID,
)
_CURRENCY = convenience(
    "The currency of the prices, which their names say too. An event that says another is refused.",
    **{"x-always": True},
    const=PRICE_CURRENCY,
)


def _price_event(type_: str, version: str, words: str) -> Schema:
    return event(
        type_,
        version,
        words,
        {
            "event_id": _EVENT_ID,
            "wine_id": _WINE_ID,
            "new_price_usd": contract("What one bottle costs, in dollars; a number with its two decimals.", **_PRICE),
            "occurred_at": contract("Since when that is the price.", type="string", pattern=TIME_PATTERN),
            "currency": _CURRENCY,
            "type": convenience("As the message's own type.", const=type_),
            "wine_name": convenience("As we write it.", type="string"),
            "merchant_id": convenience("Who asks for it.", type="string"),
            "old_price_usd": convenience(
                "What this merchant asked before; null for the first price.", anyOf=[_PRICE, {"type": "null"}]
            ),
            "native_price": convenience(
                "What the merchant asks, if not in dollars; the price in dollars is the conversion of it.",
                **_NATIVE_PRICE,
            ),
            "native_currency": convenience("The currency of that.", enum=sorted(CURRENCIES - {PRICE_CURRENCY})),
        },
    )


def _availability_event(type_: str, version: str, words: str, **more: Schema) -> Schema:
    return event(
        type_,
        version,
        words,
        {
            "event_id": _EVENT_ID,
            "wine_id": _WINE_ID,
            "merchant_id": contract("Whose offer it is.", type="string", minLength=1, maxLength=LONGEST_ID),
            "price_usd": contract("Its price, in dollars; a number with its two decimals.", **_PRICE),
            "occurred_at": contract("Since when that is so.", type="string", pattern=TIME_PATTERN),
            "currency": _CURRENCY,
            "type": convenience("As the message's own type.", const=type_),
            "wine_name": convenience("As we write it.", type="string"),
            **more,
        },
    )


SCHEMAS: dict[str, Schema] = {
    PRICE_CHANGED: _price_event(PRICE_CHANGED, "1.1", "One merchant's price of one wine changed."),
    LATE_PRICE_OBSERVED: _price_event(
        LATE_PRICE_OBSERVED, "1.1", "A price that arrived after a newer one: it is history, and never the price now."
    ),
    OFFER_WITHDRAWN: _availability_event(
        OFFER_WITHDRAWN,
        "1.0",
        "A merchant offers a wine no longer; the price is the one it had.",
        why=convenience("Why, for people.", type="string", minLength=1),
    ),
    OFFER_RETURNED: _availability_event(
        OFFER_RETURNED,
        "1.0",
        "A merchant offers a wine again, at this price.",
        price_event_id=convenience(
            f"The `{PRICE_CHANGED}` that told of the price, if it is another than before.", type="string", minLength=1
        ),
    ),
    WINE_DESCRIBED: event(
        WINE_DESCRIBED,
        "1.0",
        "A wine was entered, or what is said of it changed; also that it is no longer listed.",
        {
            "event_id": _EVENT_ID,
            "wine_id": _WINE_ID,
            "occurred_at": contract("When.", type="string", pattern=TIME_PATTERN),
            "type": convenience("As the message's own type.", const=WINE_DESCRIBED),
            "wine_name": convenience("As we write it now.", type="string"),
        },
    ),
    REFRESH_CATALOGUE: event(
        REFRESH_CATALOGUE,
        "1.0",
        "A command: take a merchant's catalogue file, or go on with it.",
        {"file_id": contract("Which file.", type="integer", minimum=1)},
    ),
}
