"""What the webhooks of shop systems have in common: products and variants become asks for listings. Pure.

Guarantee: what a shop says of a size or a vintage is read by the rules for listings, or stays in the name; a price
that is none (empty, null, 0) is no price. Imports no models. Used by shopify.py and woocommerce.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from pricing.feeds import canonical
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import Number
from pricing.matching import Ask, Listed, read_listing
from pricing.sizes import UnclearSizeError, read_packing
from pricing.titles import UnclearVintageError, read_vintage

LONGEST_TITLE = 400
LONGEST_OPTION = 100
LONGEST_NUMBER = 20  # digits; both shops count in 64 bits


@dataclass(frozen=True, slots=True)
class Brought:
    """What one webhook brings: asks, and which other listings of the merchant are no longer sold since `when`.

    `gone` is a listing's source id, or the beginning of several with a slash at its end; what is asked for is not gone.
    """

    asks: list[Ask]
    gone: str | None
    when: datetime


def describe(title: str, options: Iterable[str], *, gtin: str) -> Listed:
    """A product's title and the options that make its variant: a size, a vintage, or more of the name."""
    size, vintage, name = "", "", title
    for option in options:
        if not size and _is_size(option):
            size = option
        elif not vintage and _is_vintage(option):
            vintage = option
        else:
            name = f"{name} {option}"
    return read_listing(name, size=size, vintage=vintage, gtin=gtin)


def price(value: Any, where: str, currency: str) -> Decimal | None:
    """A shop's price, or None where there is none. Raises FeedError for what is no price either."""
    written = value.text if isinstance(value, Number) else value
    if written in (None, "") or (isinstance(written, str) and not written.strip("0.")):
        return None
    return canonical.read_price(value, where, currency)


def identity(value: Any, where: str) -> str:
    """A shop's number of a product or variant."""
    digits = value.text if isinstance(value, Number) else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= LONGEST_NUMBER):
        raise FeedError(422, "invalid_product", "An id is a whole number.", field=where)
    return digits


def text(value: Any, where: str, *, longest: int) -> str:
    """A text that may be left out."""
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > longest:
        raise FeedError(422, "invalid_product", f"This is a text of at most {longest} letters.", field=where)
    return value.strip()


def product(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise FeedError(422, "expected_object", "A product must be a JSON object.")
    return document


class UnknownTopicError(Exception):
    """The webhook is about something else than products; nothing is wrong with it."""


def _is_size(option: str) -> bool:
    try:
        read_packing(option)
    except UnclearSizeError:
        return False
    return True


def _is_vintage(option: str) -> bool:
    try:
        return read_vintage(option) is not None
    except UnclearVintageError:
        return False
