"""The canonical feed format: a parsed document → price observations, or a FeedError that names item and field. Pure.

The other forms of it (ndjson.py, cloudevents.py) unwrap what they carry and read it with `adapt` or `read_one`. Imports
no models: what a document means does not depend on what we have stored, except for whether its wines exist, which the
service says.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings

from pricing.contract import (
    CURRENCIES,
    LARGEST_NATIVE_PRICE,
    LARGEST_PRICE,
    PRICE_CURRENCY,
    TAX_UNSAID,
    TAXES,
    parse_time,
)
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import Number
from pricing.rules import Observation

# Digits as people write them: no sign, no exponent, no thousands, no leading zeros. [0-9], for \d knows 600 digits.
_PRICE = re.compile(r"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,2})?")
_WINE_ID = re.compile(r"wn_[A-Za-z0-9_]{1,37}")
_OF_AN_OBSERVATION = frozenset({"wine_id", "price", "currency", "tax", "withdrawn", "occurred_at", "merchant_id"})
_OF_THE_REQUEST = frozenset({"observations", "merchant_id", "delivery_id"})
LONGEST_DELIVERY_ID = 200
PRICE_PATTERN, WINE_ID_PATTERN = _PRICE.pattern, _WINE_ID.pattern  # for the document that describes the feed


@dataclass(frozen=True)
class Delivery:
    """What belongs together under one id of the sender's: a request, or one of the events in it.

    `where[i]` is the path of observation i, to be put before a field's name; `ignored_fields` counts what we do not
    know. `key` is what the answer is remembered under, and `meaning` what must be the same when the id comes again:
    the request's bytes where there is none.
    """

    observations: list[Observation]
    where: list[str]
    delivery_id: str | None
    ignored_fields: int
    key: str | None = None
    meaning: bytes | None = None
    field: str | None = None  # where the id stands, if not in the request's own place
    attributes: Mapping[str, str] = dataclasses.field(default_factory=dict)


def adapt(document: Any, *, merchant_id: str, now: datetime, at: str = "") -> Delivery:
    """Read one observation, or a list of them under `observations`. Raises FeedError for the first thing wrong.

    `at` is the path to the document, with its point, when it is a part of another.
    """
    if not isinstance(document, dict):
        raise FeedError(422, "expected_object", "The body must be a JSON object.", field=at.rstrip(".") or None)
    _check_merchant(document, at, merchant_id)
    delivery_id = None
    if "delivery_id" in document:
        delivery_id = check_delivery_id(document["delivery_id"], f"{at}delivery_id")
    if "observations" not in document:
        known = _OF_AN_OBSERVATION | {"delivery_id"}
        observation = _observation(document, at, now)
        return Delivery([observation], [at], delivery_id, _unknown(document, known), key=delivery_id)
    observations, where, ignored = [], [], _unknown(document, _OF_THE_REQUEST)
    for index, item in enumerate(_items(document, at)):
        path = f"{at}observations[{index}]."
        observation, unknown = read_one(item, merchant_id=merchant_id, now=now, at=path)
        observations.append(observation)
        where.append(path)
        ignored += unknown
    return Delivery(observations, where, delivery_id, ignored, key=delivery_id)


def read_one(item: Any, *, merchant_id: str, now: datetime, at: str) -> tuple[Observation, int]:
    """Read one observation of several; the second value counts the fields we do not know."""
    if not isinstance(item, dict):
        raise FeedError(422, "expected_object", "An observation must be a JSON object.", field=at.rstrip(".: "))
    _check_merchant(item, at, merchant_id)
    return _observation(item, at, now), _unknown(item, _OF_AN_OBSERVATION)


def check_count(observations: int, where: str | None) -> None:
    """How many observations one request may bring."""
    if observations > settings.FEED_MAX_BATCH:
        message = f"Send at most {settings.FEED_MAX_BATCH} observations at once."
        raise FeedError(413, "batch_too_large", message, field=where)


def check_delivery_id(value: Any, field: str) -> str:
    """A sender's own id for a request: 1 to 200 printable characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_DELIVERY_ID or not value.isprintable():
        raise FeedError(
            422, "invalid_event_id", f"Use 1 to {LONGEST_DELIVERY_ID} printable characters as text.", field=field
        )
    return value


def _items(document: dict[str, Any], at: str) -> list[Any]:
    items, path = document["observations"], f"{at}observations"
    both = sorted((_OF_AN_OBSERVATION - _OF_THE_REQUEST) & document.keys())
    if both:
        message = "Send one observation or a list of them, not both."
        raise FeedError(422, "invalid_observations", message, field=f"{at}{both[0]}")
    if not isinstance(items, list) or not items:
        raise FeedError(422, "invalid_observations", "Send a list with at least one observation.", field=path)
    check_count(len(items), path)
    return items


def _check_merchant(item: dict[str, Any], path: str, merchant_id: str) -> None:
    if "merchant_id" in item and item["merchant_id"] != merchant_id:
        raise FeedError(403, "forbidden_feed", "This key belongs to another merchant.", field=f"{path}merchant_id")


def _observation(item: dict[str, Any], path: str, now: datetime) -> Observation:
    wine_id = _wine_id(item.get("wine_id"), f"{path}wine_id")
    if withdrawn := _is_withdrawn(item, path):
        price = None
    else:
        price = read_price(item.get("price"), f"{path}price", item.get("currency"))
    if not withdrawn or "currency" in item:
        currency = _currency(item.get("currency"), f"{path}currency")
    tax = _tax(item.get("tax"), f"{path}tax")
    when = read_time(item.get("occurred_at"), f"{path}occurred_at", now)
    if price is None:
        return Observation(wine_id, None, when, withdrawn=True)
    return Observation.of(wine_id, price, currency, when, tax=tax)


def _is_withdrawn(item: dict[str, Any], path: str) -> bool:
    """Whether the merchant no longer offers the wine; it then has no price."""
    said = item.get("withdrawn", False)
    if not isinstance(said, bool):
        raise FeedError(422, "invalid_withdrawn", "Say true or false, without quotes.", field=f"{path}withdrawn")
    if said and "price" in item:
        message = "What is withdrawn has no price. Leave the price out, or withdrawn."
        raise FeedError(422, "invalid_withdrawn", message, field=f"{path}price")
    return said


def _tax(value: Any, field: str) -> str:
    if value is None:
        return TAX_UNSAID
    if not isinstance(value, str) or value not in TAXES:
        raise FeedError(422, "invalid_tax", f"Say {' or '.join(TAXES)}, or leave it out.", field=field)
    return value


def _wine_id(value: Any, field: str) -> str:
    if not isinstance(value, str) or not _WINE_ID.fullmatch(value):
        message = "A wine id is wn_ and up to 37 letters, digits or underscores."
        raise FeedError(422, "invalid_wine_id", message, field=field)
    return value


def read_price(value: Any, field: str, currency: Any = PRICE_CURRENCY) -> Decimal:
    """A price above 0, exactly as it was written, in whatever money it is. Raises FeedError."""
    text = value.text if isinstance(value, Number) else value
    largest = LARGEST_NATIVE_PRICE if _is_other_money(currency) else LARGEST_PRICE
    if not isinstance(text, str) or not _PRICE.fullmatch(text) or Decimal(text) > largest:
        digits = len(str(int(largest)))
        message = f"A price is a number or text of plain digits, with at most {digits} before the point and 2 after it."
        raise FeedError(422, "invalid_price", message, field=field)
    price = Decimal(text).quantize(Decimal("0.01"))
    if price <= 0:
        raise FeedError(422, "invalid_price", "A price is above 0: leave out what has none.", field=field)
    return price


def _is_other_money(currency: Any) -> bool:
    return isinstance(currency, str) and currency in CURRENCIES and currency != PRICE_CURRENCY


def _currency(value: Any, field: str) -> str:
    if not isinstance(value, str) or value not in CURRENCIES:
        message = "Name the currency by its ISO 4217 code, such as USD."
        raise FeedError(422, "invalid_currency", message, field=field)
    return value


def read_time(value: Any, field: str, now: datetime) -> datetime:
    """A time with its offset, neither from before FEED_EARLIEST nor ahead of our clock. Raises FeedError."""
    try:
        when = parse_time(value if isinstance(value, str) else "")
    except ValueError:
        message = "A time is RFC 3339 with its offset, such as 2030-05-17T09:30:00Z."
        raise FeedError(422, "invalid_time", message, field=field) from None
    if when.year < settings.FEED_EARLIEST:
        message = f"That is before {settings.FEED_EARLIEST}."
        raise FeedError(422, "time_out_of_range", message, field=field)
    if when > now + settings.FEED_CLOCK_TOLERANCE:
        minutes = settings.FEED_CLOCK_TOLERANCE.total_seconds() / 60
        message = f"That is more than {minutes:g} minutes ahead of our clock."
        raise FeedError(422, "time_out_of_range", message, field=field)
    return when


def _unknown(item: dict[str, Any], known: frozenset[str]) -> int:
    return len(item.keys() - known)
