"""How often a merchant may call: a count per merchant and minute, in one statement. Called by the feeds' checks; with
a key it is counted in the statement that finds the merchant (keys.py).

The table is UNLOGGED and the count commits by itself: it costs no disk flush, counts refused requests too, and a
crash of the database forgets a minute at most. The minute is the database's.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from jobs.database import run
from pricing.feeds.errors import FeedError


def counting(merchant: str) -> str:
    """The statement that counts a request of the merchant that this SQL selects, if it selects one."""
    return f"""
    INSERT INTO pricing_feedrate AS rate (merchant_id, minute, requests)
    SELECT merchant_id, date_trunc('minute', clock_timestamp()), 1 FROM ({merchant}) AS counted (merchant_id)
    ON CONFLICT (merchant_id) DO UPDATE SET
        requests = CASE WHEN rate.minute = excluded.minute THEN rate.requests + 1 ELSE 1 END,
        minute = excluded.minute
    RETURNING requests,
        greatest(1, ceil(extract(epoch FROM minute + interval '1 minute' - clock_timestamp())))::int AS seconds_left
    """  # noqa: S608 (the two that call it are constants)


COUNT = counting("SELECT %s")


@dataclass(frozen=True, slots=True)
class Usage:
    """How many requests a merchant has made in this minute, and how long the minute lasts."""

    requests: int
    seconds_left: int


def count_request(merchant_id: str) -> Usage:
    """Count one request."""
    return Usage(*run(COUNT, [merchant_id]).fetchone())


def check(usage: Usage) -> None:
    """Raises FeedError 429, with the seconds to the next minute, above FEED_REQUESTS_PER_MINUTE."""
    if usage.requests > settings.FEED_REQUESTS_PER_MINUTE:
        raise FeedError(
            429,
            "rate_limited",
            f"At most {settings.FEED_REQUESTS_PER_MINUTE} requests a minute. Send several observations in one.",
            headers={"Retry-After": str(usage.seconds_left)},
        )
