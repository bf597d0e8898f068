"""The listings' rows as listings.py writes them: all that changed of a batch in one statement.

Guarantee: none by itself. Called by listings alone, while it holds the rows' locks.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from jobs.messages import dumps
from pricing.models import Listing, Merchant

_TYPES = {
    "title": "text",
    "name": "text",
    "vintage": "smallint",
    "non_vintage": "boolean",
    "pack": "smallint",
    "size_ml": "integer",
    "gtin": "text",
    "lwin": "text",
    "said_wine_id": "text",
    "unclear": "text",
    "price": "numeric",
    "currency": "text",
    "occurred_at": "timestamptz",
    "wine_id": "text",
    "matched_by": "text",
    "set_aside_at": "timestamptz",
    "in_file": "boolean",
    "file_said": "bigint",
    "file_asked": "bigint",
}
COLUMNS = tuple(_TYPES)
# One JSON parameter: Django's bulk_update makes a CASE of a thousand branches for each column.
UPDATE = f"""
UPDATE pricing_listing AS listing SET {", ".join(f"{name} = made.{name}" for name in _TYPES)}
FROM jsonb_to_recordset(%s::jsonb) AS made (id bigint, {", ".join(f"{name} {type_}" for name, type_ in _TYPES.items())})
WHERE listing.id = made.id
"""  # noqa: S608  (constants)

# Those that are there are passed over before they could use up a number each.
MAKE = """
INSERT INTO pricing_listing (merchant_id, source_id, title, name, non_vintage, gtin, lwin, said_wine_id, unclear,
                             matched_by, currency, in_file)
SELECT %(merchant)s, made.source_id, '', '', false, '', '', '', '', '', '', false
FROM unnest(%(ids)s::text[]) AS made (source_id)
WHERE NOT EXISTS (SELECT FROM pricing_listing l WHERE l.merchant_id = %(merchant)s AND l.source_id = made.source_id)
ORDER BY made.source_id
ON CONFLICT (merchant_id, source_id) DO NOTHING
"""


def make(merchant: Merchant, source_ids: Sequence[str]) -> None:
    """Make the rows that are not there yet, empty."""
    with connection.cursor() as cursor:
        cursor.execute(MAKE, {"merchant": merchant.pk, "ids": list(source_ids)})


def write(listings: Sequence[Listing]) -> None:
    """Make the rows say what these listings say."""
    if not listings:
        return
    rows = [{"id": listing.pk, **{name: _plain(getattr(listing, name)) for name in COLUMNS}} for listing in listings]
    with connection.cursor() as cursor:
        cursor.execute(UPDATE, [dumps(rows)])


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
