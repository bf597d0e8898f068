"""The offers as feed intake reads and writes them: all wines of a batch in one statement each.

Guarantee: none by itself. Called by services and availability, while they hold the locks of the wines' rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db import connection

from jobs.messages import dumps
from pricing.models import Merchant, Offer
from pricing.rules import Standing

# One JSON parameter: a thousand rows of seven parameters each take the client longer than the server.
UPSERT = """
INSERT INTO pricing_offer (merchant_id, wine_id, price_usd, occurred_at, seen_at, event_id, updated_at,
                           native_price, native_currency, withdrawn_at)
SELECT %(merchant)s, wine_id, price_usd, occurred_at, seen_at, event_id, updated_at,
       native_price, native_currency, withdrawn_at
FROM jsonb_to_recordset(%(offers)s::jsonb) AS offer (
    wine_id text, price_usd numeric, occurred_at timestamptz, seen_at timestamptz, event_id text,
    updated_at timestamptz, native_price numeric, native_currency text, withdrawn_at timestamptz)
ON CONFLICT (wine_id, merchant_id) DO UPDATE SET
    price_usd = excluded.price_usd, occurred_at = excluded.occurred_at, seen_at = excluded.seen_at,
    event_id = excluded.event_id, updated_at = excluded.updated_at, native_price = excluded.native_price,
    native_currency = excluded.native_currency, withdrawn_at = excluded.withdrawn_at
"""
COLUMNS = (
    *("price_usd", "occurred_at", "seen_at", "event_id", "updated_at"),
    *("native_price", "native_currency", "withdrawn_at"),
)  # as the fields of Standing


def read(merchant: Merchant, wine_ids: Iterable[str]) -> dict[str, Standing]:
    """What the merchant asks for these wines now, by wine, or asked before it withdrew them."""
    rows = Offer.objects.filter(merchant=merchant, wine__in=list(wine_ids)).values_list("wine_id", *COLUMNS)
    return {wine_id: Standing(*said) for wine_id, *said in rows}


def write(merchant: Merchant, standings: Mapping[str, Standing]) -> None:
    """Make the merchant's offers say this; offers not named stay as they are."""
    offers = [
        {
            "wine_id": wine_id,
            "price_usd": standing.price_usd,
            "occurred_at": standing.occurred_at.isoformat(),
            "seen_at": standing.seen_at.isoformat(),
            "event_id": standing.event_id,
            "updated_at": standing.updated_at.isoformat(),
            "native_price": standing.native_price,
            "native_currency": standing.native_currency,
            "withdrawn_at": standing.withdrawn_at.isoformat() if standing.withdrawn_at else None,
        }
        for wine_id, standing in standings.items()
    ]
    with connection.cursor() as cursor:
        cursor.execute(UPSERT, {"merchant": merchant.pk, "offers": dumps(offers)})
