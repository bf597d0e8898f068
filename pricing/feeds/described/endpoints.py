"""What is at each of the feeds' addresses: one entry for each, from which the OpenAPI document and its page are made.

Guarantee: tests hold every entry against the addresses in urls.py, the methods they take, and each answer that the
feeds' tests get. To add an address: an entry in ENDPOINTS, its shapes in shapes.py, its new codes in refusals.py.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from pricing.contract import TIME_PATTERN
from pricing.feeds import canonical, catalogue_views, cloudevents, formats, shopify, woocommerce
from pricing.feeds.described.endpoint import KEY, SHOPIFY, SIGNED, WOOCOMMERCE, Body, Endpoint, Parameter
from pricing.feeds.described.shape import Schema

_MINUTES = f"{settings.FEED_SIGNATURE_TOLERANCE.total_seconds() / 60:g}"

# --- What is refused, in the order in which it is checked ------------------------------------------------------

_FIRST = ("https_required", "method_not_allowed")
_LENGTH = ("length_required", "invalid_length", "payload_too_large", "incomplete_body")
_ALLOWED_IN = ("missing_credentials", "invalid_credentials")
_THEN = ("rate_limited", "unsupported_media_type")
_JSON = ("invalid_encoding", "invalid_json", "duplicate_key", "too_deep", "forbidden_character", "expected_object")
_PRICES = ("invalid_price", "invalid_time", "time_out_of_range", "batch_too_large", "invalid_event_id", "id_conflict")
_OBSERVED = ("invalid_observations", "invalid_cloudevent", "invalid_wine_id", "invalid_currency", "unknown_wine")
_SAID = ("invalid_tax", "invalid_withdrawn")
_BODY = (*_FIRST, *_LENGTH, *_ALLOWED_IN, *_THEN)
_CANONICAL_REFUSALS = (*_BODY, "key_in_address", "forbidden_feed", *_JSON, *_PRICES, *_OBSERVED, *_SAID, "unavailable")
# What a shop signs and we cannot read is no refusal: see UNREADABLE in refusals.py.
_SHOP_REFUSALS = (*_FIRST, *_LENGTH, *_ALLOWED_IN, "rate_limited", "unavailable")
_FILE_REFUSALS = (*_BODY, "key_in_address", "invalid_name", "invalid_time", "time_out_of_range", "unavailable")
_REPORT_REFUSALS = (*_FIRST, *_ALLOWED_IN, "key_in_address", "rate_limited", "unknown_file", "unavailable")

# --- What the addresses share -----------------------------------------------------------------------------------

_TIME: Schema = {"type": "string", "pattern": TIME_PATTERN}
_PRINTABLE: Schema = {"type": "string", "minLength": 1, "maxLength": canonical.LONGEST_DELIVERY_ID}
_TRACE = Parameter(
    "traceparent", "W3C Trace Context; stays with the price all the way to the mail.", {"type": "string"}
)
_MERCHANT = Parameter(
    "merchant_id", "Your merchant id.", {"type": "string", "pattern": "^mch_[a-z0-9_]{1,36}$"}, "path", required=True
)
_IDEMPOTENCY = Parameter(
    "Idempotency-Key", "Your own id of this request; counts before any id in the body.", _PRINTABLE
)
_BINARY = tuple(
    Parameter(
        f"{cloudevents.HEADER}{name}", f"CloudEvents 1.0 in binary form: the event's `{name}`.", {"type": "string"}
    )
    for name in ("specversion", "id", "source", "type", "time")
)
_SIGNED_HEADERS = (
    Parameter("webhook-id", "Of a signed request: its id, the same on each try.", _PRINTABLE),
    Parameter(
        "webhook-timestamp",
        f"Of a signed request: when it was signed, in seconds since 1970; at most {_MINUTES} minutes from our clock.",
        {"type": "string", "pattern": "^[0-9]{1,12}$"},
    ),
)

_PRICE = {"wine_id": "wn_4417", "price": "154.00", "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z"}
_OTHER = {**_PRICE, "wine_id": "wn_4418", "price": 21.5}
_EVENT = {"specversion": "1.0", "id": "7f9c1e52", "source": "https://shop.example", "type": "price", "data": _PRICE}
_CANONICAL = {
    formats.JSON: Body(("One", "Several"), _PRICE),
    formats.NDJSON: Body(("Lines",), [_PRICE, _OTHER]),
    formats.CLOUDEVENT: Body(("CloudEvent",), _EVENT),
    formats.CLOUDEVENTS: Body(("CloudEvents",), [_EVENT, {**_EVENT, "id": "7f9c1e53", "data": _OTHER}]),
}
_TAKEN = {202: ("Taken", "Taken, and safely stored.")}
_LISTED = {
    202: (
        "ListingsTaken",
        "Taken, and safely stored; a result for each variant. What is signed and cannot be read, or is about no "
        "product, is answered so too, for else your shop would switch the webhook off.",
    )
}
_FILES = {
    "text/csv": "sku,wine name,size,price,currency\nM16,Ch. Montrose 2016,75cl,154.00,USD\n",
    "text/tab-separated-values": "sku\twine name\tsize\tprice\tcurrency\nM16\tCh. Montrose 2016\t75cl\t154.00\tUSD\n",
    "application/rss+xml": '<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"><channel><item><g:id>M16</g:id>'
    "<g:title>Ch. Montrose 2016 75cl</g:title><g:price>154.00 USD</g:price>"
    "<g:availability>in_stock</g:availability></item></channel></rss>",
}


def _of_shop(adapter: Any, delivery: str, *more: Parameter) -> tuple[Parameter, ...]:
    topics = ", ".join(f"`{topic}`" for topic in sorted({*adapter.CHANGED, adapter.DELETED}))
    return (
        _MERCHANT,
        Parameter(adapter.TOPIC, f"{topics}; any other is heard and ignored.", {"type": "string"}),
        Parameter(adapter.DELIVERY, delivery, _PRINTABLE, required=True),
        *more,
        _TRACE,
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="price-changes",
        path="/feeds/v1/price-changes",
        summary="Send prices with a key",
        description="One observation or several, in any of four forms. All are taken, or none.",
        credentials=(KEY,),
        parameters=(_IDEMPOTENCY, _TRACE, *_BINARY),
        bodies=_CANONICAL,
        answers=_TAKEN,
        refusals=_CANONICAL_REFUSALS,
    ),
    Endpoint(
        name="price-changes-of-merchant",
        path="/feeds/v1/price-changes/{merchant_id}",
        summary="Send prices, signed",
        description="The same; the address says whose signature to expect. A key is taken here too.",
        credentials=(KEY, SIGNED),
        parameters=(_MERCHANT, *_SIGNED_HEADERS, _IDEMPOTENCY, _TRACE, *_BINARY),
        bodies=_CANONICAL,
        answers=_TAKEN,
        refusals=(*_CANONICAL_REFUSALS, "stale_or_invalid_timestamp"),
    ),
    Endpoint(
        name="shopify",
        path="/feeds/v1/shopify/{merchant_id}",
        summary="Webhooks of a Shopify shop",
        description="We find the wine by its bar code, or by name, vintage and bottle size.",
        credentials=(SHOPIFY,),
        parameters=_of_shop(
            shopify,
            "Shopify's id of the webhook.",
            Parameter(shopify.TRIGGERED, "When it was triggered; else `updated_at` counts.", _TIME),
        ),
        bodies={
            formats.JSON: Body(
                ("ShopifyProduct",),
                {
                    "id": 7,
                    "title": "Ch. Montrose 2016 75cl",
                    "updated_at": "2026-03-14T05:12:04-04:00",
                    "variants": [{"id": 11, "price": "154.00", "option1": "Default Title"}],
                },
            )
        },
        answers=_LISTED,
        refusals=_SHOP_REFUSALS,
    ),
    Endpoint(
        name="woocommerce",
        path="/feeds/v1/woocommerce/{merchant_id}",
        summary="Webhooks of a WooCommerce shop",
        description="We find the wine by its number, or by name, vintage and bottle size. A saved webhook's ping is "
        "answered with 200.",
        credentials=(WOOCOMMERCE,),
        parameters=_of_shop(woocommerce, "WooCommerce's id of the delivery."),
        bodies={
            formats.JSON: Body(
                ("WooCommerceProduct",),
                {
                    "id": 794,
                    "name": "Ch. Montrose 2016 75cl",
                    "type": "simple",
                    "price": "154.00",
                    "date_modified_gmt": "2026-03-14T09:12:04",
                },
            ),
            "application/x-www-form-urlencoded": Body(("WooCommercePing",), {"webhook_id": "12"}),
        },
        answers={200: ("Nothing", "The ping was heard."), **_LISTED},
        refusals=_SHOP_REFUSALS,
        unsigned_bodies=frozenset({"application/x-www-form-urlencoded"}),
    ),
    Endpoint(
        name="catalogues",
        path="/feeds/v1/catalogues",
        summary="Send all that you sell, as one file",
        description="The file is kept at once and taken soon after: what differs from your last one is published. "
        f"At most {settings.CATALOGUE_MAX_BYTES:,} bytes as sent, packed with gzip or not.",
        credentials=(KEY,),
        parameters=(
            Parameter(
                "name",
                "The file's name, in printable characters.",
                {"type": "string", "maxLength": catalogue_views.LONGEST_NAME},
                "query",
            ),
            Parameter("as_of", "The time of which its prices are; now, if you do not say it.", _TIME, "query"),
        ),
        bodies={
            media_type: Body(("CatalogueFile",), _FILES.get(media_type)) for media_type in catalogue_views.MEDIA_TYPES
        },
        answers={202: ("CatalogueTaken", "All of it is safely stored.")},
        refusals=_FILE_REFUSALS,
        methods=("PUT", "POST"),
    ),
    Endpoint(
        name="catalogue",
        path="/feeds/v1/catalogues/{file_id}",
        summary="Ask what came of a file",
        description="As often as you like, with the key of the merchant who sent it.",
        credentials=(KEY,),
        parameters=(
            Parameter(
                "file_id",
                "The file's `id` in the answer to it.",
                {"type": "string", "pattern": "^[0-9]{1,18}$"},
                "path",
                required=True,
            ),
        ),
        bodies={},
        answers={200: ("CatalogueReport", "The report, as far as it is known.")},
        refusals=_REPORT_REFUSALS,
        methods=("GET", "HEAD"),
    ),
)
