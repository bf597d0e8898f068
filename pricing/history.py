"""Price history: the projection of the message log that charts are drawn from. The only SQL that writes it.

A price becomes a row of prices, an offer's end or return one of availability, the gaps between them. Guarantee:
appends exactly one row per event, or raises and appends none. Called by the `price-history` subscription
inside the transaction that also writes the ledger, which is what keeps a redelivered event from being appended twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import DataError, connection

from jobs.messages import Message, join_bodies
from pricing.contract import LARGEST_PRICE, PRICE_CURRENCY, TIME_PATTERN
from pricing.events import (
    LATE_PRICE_OBSERVED,
    LONGEST_ID,
    OFFER_RETURNED,
    OFFER_WITHDRAWN,
    AvailabilityChanged,
    PriceChanged,
)

AVAILABILITY = frozenset({OFFER_WITHDRAWN, OFFER_RETURNED})
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
# As AvailabilityChanged.parse states it; the price is that of the return, and none after the end.
AVAILABILITY_COLUMNS = "wine_id, merchant_id, price_usd, observed_at, event_id"
AVAILABILITY_FROM_BODIES = """
SELECT wine_id #>> '{}', merchant_id #>> '{}', CASE WHEN type = %(returned)s THEN price_usd::numeric END,
       occurred_at::timestamptz, event_id #>> '{}'
FROM jsonb_to_recordset(%(bodies)s::jsonb) AS body (
    event_id jsonb, type text, wine_id jsonb, merchant_id jsonb, price_usd jsonb, currency text, occurred_at text)
WHERE type IN (%(withdrawn)s, %(returned)s)
  AND jsonb_typeof(event_id) = 'string' AND event_id #>> '{}' <> ''
  AND jsonb_typeof(wine_id) = 'string' AND length(wine_id #>> '{}') BETWEEN 1 AND %(longest_id)s
  AND jsonb_typeof(merchant_id) = 'string' AND length(merchant_id #>> '{}') BETWEEN 1 AND %(longest_id)s
  AND CASE WHEN jsonb_typeof(price_usd) = 'number'
           THEN price_usd::numeric > 0 AND price_usd::numeric <= %(largest)s
                AND round(price_usd::numeric, 2) = price_usd::numeric END
  AND currency = %(currency)s
  AND occurred_at ~ %(time)s
"""
APPEND = f"INSERT INTO pricing_pricehistory ({COLUMNS}) {FROM_BODIES}"
APPEND_AVAILABILITY = f"INSERT INTO pricing_availability ({AVAILABILITY_COLUMNS}) {AVAILABILITY_FROM_BODIES}"
CONTRACT: dict[str, Any] = {
    "late": LATE_PRICE_OBSERVED,
    "withdrawn": OFFER_WITHDRAWN,
    "returned": OFFER_RETURNED,
    "longest_id": LONGEST_ID,
    "largest": LARGEST_PRICE,
    "currency": PRICE_CURRENCY,
    "time": TIME_PATTERN,
}


def append(messages: Sequence[Message]) -> None:
    """Append one row per message. Raises PermanentError for the first message that breaks the contract."""
    gaps = [message for message in messages if message.type in AVAILABILITY]
    prices = [message for message in messages if message.type not in AVAILABILITY] if gaps else messages
    if prices:
        _append(prices, APPEND, PriceChanged.parse)
    if gaps:
        _append(gaps, APPEND_AVAILABILITY, AvailabilityChanged.parse)


def check(message: Message) -> None:
    """Raises PermanentError for a message that `append` would refuse."""
    (AvailabilityChanged if message.type in AVAILABILITY else PriceChanged).parse(message)


def _append(messages: Sequence[Message], sql: str, parse: Callable[[Message], object]) -> None:
    try:
        appended = _insert(messages, sql)
    except DataError:  # a date that no calendar has
        appended = -1
    if appended != len(messages):
        for message in messages:
            parse(message)
        raise RuntimeError(
            f"{len(messages)} price events, {appended} rows of history, and nothing wrong with any event"
        )


def _insert(messages: Sequence[Message], sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"bodies": join_bodies(list(messages)), **CONTRACT})
        return int(cursor.rowcount)
