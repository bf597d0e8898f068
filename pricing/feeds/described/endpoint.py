"""What is said of an address of the feeds: who may send, in what form, what is answered. Pure; see endpoints.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs import standard_webhooks
from pricing.feeds import shopify, woocommerce
from pricing.feeds.described.shape import Schema

KEY, SIGNED, SHOPIFY, WOOCOMMERCE = "feedKey", "standardWebhooks", "shopify", "woocommerce"
SECURITY: dict[str, Schema] = {
    KEY: {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "wck_<8 letters>_<secret>",
        "description": "Your feed key, never in an address.",
    },
    SIGNED: {
        "type": "apiKey",
        "in": "header",
        "name": "webhook-signature",
        "description": "Standard Webhooks (https://www.standardwebhooks.com): `v1,` and the base64 of HMAC-SHA256 over "
        f"`<webhook-id>.<webhook-timestamp>.<body>`; up to {standard_webhooks.MOST_SIGNATURES} with a space between. "
        "An `Authorization` header, if there is one, counts instead.",
    },
    SHOPIFY: {
        "type": "apiKey",
        "in": "header",
        "name": shopify.SIGNATURE,
        "description": "The base64 of HMAC-SHA256 over the body, as Shopify signs it.",
    },
    WOOCOMMERCE: {
        "type": "apiKey",
        "in": "header",
        "name": woocommerce.SIGNATURE,
        "description": "The base64 of HMAC-SHA256 over the body, as WooCommerce signs it.",
    },
}


@dataclass(frozen=True)
class Parameter:
    """A header, or a part of the address."""

    name: str
    description: str
    schema: Schema
    place: str = "header"
    required: bool = False


@dataclass(frozen=True)
class Body:
    """What may come under one media type: the name of a schema, or of several, and an example, if it can be shown."""

    schemas: tuple[str, ...]
    example: Any = None


@dataclass(frozen=True)
class Endpoint:
    """`credentials`: any one of them lets in. `answers`: status → name of a schema and words. `refusals`: codes."""

    name: str
    path: str
    summary: str
    description: str
    credentials: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    bodies: Mapping[str, Body]
    answers: Mapping[int, tuple[str, str]]
    refusals: tuple[str, ...]
    methods: tuple[str, ...] = ("POST",)
    unsigned_bodies: frozenset[str] = field(default_factory=frozenset)  # media types that need no credentials
