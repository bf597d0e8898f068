"""Price history: the projection of the message log that charts are drawn from. The only SQL that writes it.

Guarantee: appends exactly one row per event, or raises and appends none. Called by the `price-history` subscription
inside the transaction that also writes the ledger, which is what keeps a redelivered event from being appended twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import DataError, connection

from jobs.messages import Message, join_bodies
from pricing.contract import LARGEST_PRICE, PRICE_CURRENCY, TIME_PATTERN
from pricing.events import LATE_PRICE_OBSERVED, LONGEST_ID, PriceChanged

# One JSON parameter, whatever the number of messages: the stored bodies travel back without being parsed here.
# The WHERE is the contract, as PriceChanged.parse states it in words; columns are jsonb where the JSON type matters.
COLUMNS = "wine_id, merchant_id, price_usd, observed_at, event_id, late"
FROM_BODIES = """
SELECT wine_id #>> '{}', left(coalesce(merchant_id, ''), %(longest_id)s), new_price_usd::numeric,
       occurred_at::timestamptz, event_id #>> '{}', coalesce(type = %(late)s, false)
FROM jsonb_to_recordset(%(bodies)s::jsonb) AS body (
    event_id jsonb, type text, wine_id jsonb, merchant_id text, new_price_usd jsonb, currency text, occurred_at text)
WHERE jsonb_typeof(event_id) = 'string' AND event_id #>> '{}' <> ''
  AND jsonb_typeof(wine_id) = 'string' AND length(wine_id #>> '{}') BETWEEN 1 AND %(longest_id)s
  AND CASE WHEN jsonb_typeof(new_price_usd) = 'number'
           THEN new_price_usd::numeric > 0 AND new_price_usd::numeric <= %(largest)s
                AND round(new_price_usd::numeric, 2) = new_price_usd::numeric END
  AND currency = %(currency)s
  AND occurred_at ~ %(time)s
"""
APPEND = f"INSERT INTO pricing_pricehistory ({COLUMNS}) {FROM_BODIES}"
CONTRACT: dict[str, Any] = {
    "late": LATE_PRICE_OBSERVED,
    "longest_id": LONGEST_ID,
    "largest": LARGEST_PRICE,
    "currency": PRICE_CURRENCY,
    "time": TIME_PATTERN,
}


def append(messages: Sequence[Message]) -> None:
    """Append one row per message. Raises PermanentError for the first message that breaks the contract."""
    try:
        appended = _insert(messages)
    except DataError:  # a date that no calendar has
        appended = -1
    if appended != len(messages):
        for message in messages:
            PriceChanged.parse(message)
        raise RuntimeError(
            f"{len(messages)} price events, {appended} rows of history, and nothing wrong with any event"
        )


def _insert(messages: Sequence[Message]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(APPEND, {"bodies": join_bodies(list(messages)), **CONTRACT})
        return int(cursor.rowcount)
