"""Products as shop systems send them, with the traps of the real ones, and a way to send them."""

import base64
import hashlib
import hmac
import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

SECRET = "a secret of sixteen letters or more"


def shopify_variant(id_: int = 11, price: Any = "189.00", *options: str | None, **fields: Any) -> dict[str, Any]:
    option1, option2, option3 = (*options, None, None, None)[:3]
    return {
        "id": id_,
        "product_id": 7,
        "title": " / ".join(option for option in options if option) or "Default Title",
        "price": price,
        "compare_at_price": "250.00",
        "position": 1,
        "sku": "MON16",
        "barcode": None,
        "option1": option1 or "Default Title",
        "option2": option2,
        "option3": option3,
        "updated_at": "2026-03-14T05:12:04-04:00",
        **fields,
    }


def shopify_product(*variants: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "title": "Ch. Montrose 2016 75cl",
        "body_html": "<p>From $149. 6 x 75cl available.</p>",
        "vendor": "A shop",
        "product_type": "Wine",
        "created_at": "2026-01-01T00:00:00+01:00",
        "updated_at": "2026-03-14T05:12:04-04:00",
        "published_at": "2026-01-01T00:00:00+01:00",
        "status": "active",
        "variants": list(variants) or [shopify_variant()],
        **fields,
    }


def woo_product(**fields: Any) -> dict[str, Any]:
    return {
        "id": 794,
        "name": "Ch. Montrose 2016 75cl",
        "type": "simple",
        "status": "publish",
        "date_modified": "2026-03-14T10:12:04",
        "date_modified_gmt": "2026-03-14T09:12:04",
        "price": "189.00",
        "regular_price": "210.00",
        "sale_price": "189.00",
        "price_html": "<span>&#36;</span>189.00",
        "attributes": [],
        "variations": [],
        "parent_id": 0,
        **fields,
    }


def signature(body: bytes, secret: str = SECRET) -> str:
    return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()


def send(system: str, document: Any, headers: dict[str, str | None], *, merchant: str = "mch_082") -> HttpResponse:
    """Post as the shop system does; a header given as None is left out."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    named = {
        "shopify": {
            "X-Shopify-Hmac-Sha256": signature(body),
            "X-Shopify-Topic": "products/update",
            "X-Shopify-Webhook-Id": "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
            "X-Shopify-Triggered-At": "2026-03-14T09:12:04.877041743Z",
            "X-Shopify-Shop-Domain": "shop.example",
        },
        "woocommerce": {
            "X-WC-Webhook-Signature": signature(body),
            "X-WC-Webhook-Topic": "product.updated",
            "X-WC-Webhook-Delivery-ID": "d5ca92cb1e5a1d53",
            "X-WC-Webhook-ID": "12",
            "X-WC-Webhook-Source": "https://shop.example/",
        },
    }[system]
    sent = {name: value for name, value in {**named, **headers}.items() if value is not None}
    content_type = sent.pop("Content-Type", "application/json")
    client = Client(raise_request_exception=True)
    always = {"CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": content_type}
    return client.generic("POST", f"/feeds/v1/{system}/{merchant}", body, content_type, headers=sent, **always)
