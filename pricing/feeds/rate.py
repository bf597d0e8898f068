"""How often a merchant may call: a count per merchant and minute, in one statement. Called by the feed's view.

The table is UNLOGGED and the count commits by itself: it costs no disk flush, counts refused requests too, and a
crash of the database forgets a minute at most. The minute is the database's.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection

from pricing.feeds.errors import FeedError

COUNT = """
INSERT INTO pricing_feedrate AS rate (merchant_id, minute, requests)
VALUES (%s, date_trunc('minute', clock_timestamp()), 1)
ON CONFLICT (merchant_id) DO UPDATE SET
    requests = CASE WHEN rate.minute = excluded.minute THEN rate.requests + 1 ELSE 1 END,
    minute = excluded.minute
RETURNING requests, greatest(1, ceil(extract(epoch FROM minute + interval '1 minute' - clock_timestamp())))::int
"""


def count_request(merchant_id: str) -> None:
    """Count one request. Raises FeedError 429, with the seconds to the next minute, above FEED_REQUESTS_PER_MINUTE."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT, [merchant_id])
        requests, seconds_left = cursor.fetchone()
    if requests > settings.FEED_REQUESTS_PER_MINUTE:
        raise FeedError(
            429,
            "rate_limited",
            f"At most {settings.FEED_REQUESTS_PER_MINUTE} requests a minute. Send several observations in one.",
            headers={"Retry-After": str(seconds_left)},
        )
