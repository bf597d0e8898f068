"""The lowest price of a wine before an event, over the window of an alert that waits for a new low.

Reads the price history, which is another subscription's projection: it may be seconds behind, so the prices as matching
has consumed them count too; what it is ahead of is cut off by the event's time. A late price was nobody's price.
Called by matching.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import connection

from alerts.models import Alert
from jobs.messages import dumps

Window = tuple[str | None, int | None]  # merchant, or any; days, or ever

# What was asked within the window, and what stood when it began.
FIND = """
SELECT asked.n, least(
    (SELECT min(price_usd) FROM pricing_pricehistory seen
     WHERE seen.wine_id = asked.wine_id AND NOT seen.late AND seen.event_id <> asked.event_id
       AND seen.observed_at <= asked.until AND (asked.since IS NULL OR seen.observed_at >= asked.since)
       AND (asked.merchant_id IS NULL OR seen.merchant_id = asked.merchant_id)),
    (SELECT min(stood.price_usd) FROM (
        SELECT DISTINCT ON (merchant_id) merchant_id, price_usd FROM pricing_pricehistory seen
        WHERE seen.wine_id = asked.wine_id AND NOT seen.late AND seen.observed_at < asked.since
          AND (asked.merchant_id IS NULL OR seen.merchant_id = asked.merchant_id)
        ORDER BY merchant_id, observed_at DESC, id DESC
     ) stood
     WHERE (SELECT gap.price_usd IS NOT NULL FROM pricing_availability gap
            WHERE gap.wine_id = asked.wine_id AND gap.merchant_id = stood.merchant_id AND gap.observed_at < asked.since
            ORDER BY gap.observed_at DESC, gap.id DESC LIMIT 1) IS NOT FALSE))
FROM jsonb_to_recordset(%s::jsonb) AS asked (
    n int, wine_id text, merchant_id text, since timestamptz, until timestamptz, event_id text)
"""


@dataclass(frozen=True, slots=True)
class Question:
    """The lowest price of a wine, in dollars, before an event that came to be at `until`."""

    wine_id: str
    event_id: str
    until: datetime
    window: Window


def windows(wine_ids: set[str]) -> dict[str, set[Window]]:
    """The windows that these wines' alerts look at: 1 query."""
    rows = Alert.live.filter(wine_id__in=wine_ids, target__isnull=True, kind=Alert.Kind.LOW).order_by()
    found: dict[str, set[Window]] = defaultdict(set)
    for wine_id, merchant_id, days in rows.values_list("wine_id", "merchant_id", "low_days").distinct():
        found[wine_id].add((merchant_id, days))
    return found


def lowest(questions: Sequence[Question]) -> dict[Question, Decimal]:
    """The answers, where there was a price at all: 1 query, or none."""
    if not questions:
        return {}
    rows = [
        {
            "n": n,
            "wine_id": question.wine_id,
            "merchant_id": question.window[0],
            "since": None
            if question.window[1] is None
            else (question.until - timedelta(days=question.window[1])).isoformat(),
            "until": question.until.isoformat(),
            "event_id": question.event_id,
        }
        for n, question in enumerate(questions)
    ]
    with connection.cursor() as cursor:
        cursor.execute(FIND, [dumps(rows)])
        return {questions[n]: low for n, low in cursor.fetchall() if low is not None}
