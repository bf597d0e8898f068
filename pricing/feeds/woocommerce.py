"""WooCommerce's webhooks product.created, updated, restored and deleted. Pure; imports no models.

A product, or a variation of one, is the listing `woocommerce/<id>`. A variable product's own price is only that of its
cheapest variation, so it is none; its variations come by themselves. Guarantee: raises nothing but these two errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pricing.feeds import canonical, shops
from pricing.feeds.errors import FeedError
from pricing.feeds.shops import Brought
from pricing.matching import Ask

SIGNATURE = "x-wc-webhook-signature"
TOPIC = "x-wc-webhook-topic"
DELIVERY = "x-wc-webhook-delivery-id"
CHANGED, DELETED = frozenset({"product.created", "product.updated", "product.restored"}), "product.deleted"
WITH_A_PRICE = frozenset({"simple", "variation"})
# Sent when a webhook is saved: unsigned, as a form, and disabled unless the answer is exactly 200.
PING = re.compile(rb"webhook_id=[0-9]{1,20}")


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
    source_id = f"woocommerce/{shops.identity(product.get('id'), 'id')}"
    if topic == DELETED:
        return Brought([], gone=source_id, when=now)  # the document is only {"id": …}
    when = _time(product.get("date_modified_gmt"), now)
    if product.get("type", "simple") not in WITH_A_PRICE:
        return Brought([], gone=source_id, when=when)
    title = shops.text(product.get("name"), "name", longest=shops.LONGEST_TITLE)
    asked = shops.price(product.get("price"), "price", currency)
    number = shops.text(product.get("global_unique_id"), "global_unique_id", longest=shops.LONGEST_OPTION)
    ask = Ask(
        source_id=source_id,
        listed=shops.describe(title, _options(product, title), gtin=number),
        price=asked if product.get("status", "publish") == "publish" else None,
        currency=currency,
        occurred_at=when,
        in_stock=product.get("stock_status", "instock") != "outofstock",
    )
    return Brought([ask], gone=None, when=when)


def _options(product: dict[str, Any], title: str) -> list[str]:
    """What makes the variation: its options, less those that WooCommerce has put into its name already."""
    attributes = product.get("attributes") or []
    if not isinstance(attributes, list) or not all(isinstance(each, dict) for each in attributes):
        raise FeedError(422, "invalid_product", "Attributes are a list of objects.", field="attributes")
    options = [
        shops.text(each.get("option"), f"attributes[{index}].option", longest=shops.LONGEST_OPTION)
        for index, each in enumerate(attributes)
    ]
    return [option for option in options if option and option.lower() not in title.lower()]


def _time(value: Any, now: datetime) -> datetime:
    """WooCommerce's GMT times come without an offset."""
    if not isinstance(value, str):
        value = ""
    return canonical.read_time(f"{value}Z", "date_modified_gmt", now)
