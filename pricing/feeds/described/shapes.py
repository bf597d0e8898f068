"""The shapes of what the feeds take and answer, as JSON Schema, made from the constants that check requests.

A schema says what it can; the rest is in its words (a calendar has no 30 February, a text must be printable). Tests
hold these shapes against the adapters, value by value, and against every answer of the feeds' tests.
"""

from __future__ import annotations

from pricing.feeds.described import answer_shapes, catalogue_shapes, observation_shapes, shop_shapes
from pricing.feeds.described.shape import Schema

__all__ = ["SCHEMAS", "Schema"]

SCHEMAS: dict[str, Schema] = {
    "Currency": observation_shapes.CURRENCY,
    "Observation": observation_shapes.OBSERVATION,
    "One": observation_shapes.ONE,
    "Several": observation_shapes.SEVERAL,
    "Lines": observation_shapes.LINES,
    "CloudEvent": observation_shapes.EVENT,
    "CloudEvents": observation_shapes.EVENTS,
    "ShopifyProduct": shop_shapes.SHOPIFY_PRODUCT,
    "WooCommerceProduct": shop_shapes.WOOCOMMERCE_PRODUCT,
    "WooCommercePing": shop_shapes.WOOCOMMERCE_PING,
    "Result": answer_shapes.RESULT,
    "ListingResult": answer_shapes.LISTING_RESULT,
    "Taken": answer_shapes.TAKEN,
    "ListingsTaken": answer_shapes.LISTINGS_TAKEN,
    "CatalogueFile": catalogue_shapes.FILE,
    "CatalogueTaken": catalogue_shapes.TAKEN,
    "CatalogueReport": catalogue_shapes.REPORT,
    "CatalogueRejection": catalogue_shapes.REJECTION,
    "Nothing": {"description": "Nothing more.", "type": "object", "maxProperties": 0},
    "Error": answer_shapes.ERROR,
}
