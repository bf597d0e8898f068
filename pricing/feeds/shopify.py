"""Shopify's webhooks products/create, products/update and products/delete. Pure; imports no models.

A product's variants are listings `shopify/<product>/<variant>`. Prices come without a currency: it is the shop's, so
the merchant's. Guarantee: whatever the document, it raises nothing but the two errors below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pricing.feeds import canonical, shops
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import Number
from pricing.feeds.shops import Brought
from pricing.matching import Ask

SIGNATURE = "x-shopify-hmac-sha256"
TOPIC = "x-shopify-topic"
DELIVERY = "x-shopify-webhook-id"
TRIGGERED = "x-shopify-triggered-at"
CHANGED, DELETED = frozenset({"products/create", "products/update"}), "products/delete"
ONLY_VARIANT = "Default Title"  # what Shopify calls the variant of a product that has no variants


def check_topic(headers: Mapping[str, str]) -> str:
    """The topic, which is about products. Raises UnknownTopicError."""
    topic = headers.get(TOPIC, "")
    if topic not in CHANGED and topic != DELETED:
        raise shops.UnknownTopicError
    return topic


def adapt(headers: Mapping[str, str], document: Any, *, currency: str, now: datetime) -> Brought:
    """Read one webhook; `headers` have lower-case names. Raises FeedError."""
    topic = check_topic(headers)
    product = shops.product(document)
    all_of_it = f"shopify/{shops.identity(product.get('id'), 'id')}/"
    if topic == DELETED:
        return Brought([], gone=all_of_it, when=_triggered(headers, now) or now)
    when = _triggered(headers, now) or canonical.read_time(product.get("updated_at"), "updated_at", now)
    asks = list(_asks(product, all_of_it, when, currency))
    canonical.check_count(len(asks), "variants")
    if len({ask.source_id for ask in asks}) != len(asks):
        raise FeedError(422, "invalid_product", "Two variants have one id.", field="variants")
    return Brought(asks, gone=all_of_it, when=when)


def _asks(product: dict[str, Any], all_of_it: str, when: datetime, currency: str) -> Iterator[Ask]:
    title = shops.text(product.get("title"), "title", longest=shops.LONGEST_TITLE)
    sold = product.get("status", "active") == "active"
    variants = product.get("variants")
    if not isinstance(variants, list) or not all(isinstance(variant, dict) for variant in variants):
        raise FeedError(422, "invalid_product", "A product has a list of variants.", field="variants")
    for index, variant in enumerate(variants):
        at = f"variants[{index}]"
        options = [
            shops.text(variant.get(name), f"{at}.{name}", longest=shops.LONGEST_OPTION)
            for name in ("option1", "option2", "option3")
        ]
        barcode = shops.text(variant.get("barcode"), f"{at}.barcode", longest=shops.LONGEST_OPTION)
        asked = shops.price(variant.get("price"), f"{at}.price", currency)
        yield Ask(
            source_id=all_of_it + shops.identity(variant.get("id"), f"{at}.id"),
            listed=shops.describe(title, [each for each in options if each not in ("", ONLY_VARIANT)], gtin=barcode),
            price=asked if sold else None,
            currency=currency,
            occurred_at=when,
            in_stock=not _is_sold_out(variant),
        )


def _is_sold_out(variant: dict[str, Any]) -> bool:
    """Shopify counts the stock, there is none, and it may not be sold beyond that. What it does not count is there."""
    counted = variant.get("inventory_management") is not None and variant.get("inventory_policy") == "deny"
    left = variant.get("inventory_quantity")
    return counted and isinstance(left, Number) and (left.text.startswith("-") or not left.text.strip("0"))


def _triggered(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """When the webhook was triggered: a retry hours later, with the body of then, still says so."""
    return canonical.read_time(headers[TRIGGERED], TRIGGERED, now) if TRIGGERED in headers else None
