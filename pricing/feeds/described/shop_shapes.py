"""The shapes of what shop systems send, as far as we read it: see shapes.py, which lists them. Pure."""

from __future__ import annotations

from django.conf import settings

from pricing.contract import TIME_PATTERN
from pricing.feeds.described.shape import Schema

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
