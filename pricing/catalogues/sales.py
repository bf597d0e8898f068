"""Which of two prices counts now: a sale's, or the usual one. Pure; used by the readers.

The dates are Google's `sale_price_effective_date`: two ISO 8601 times with a slash between. Without them a sale's
price counts, as it does there. A date without a time is that whole day, a time without an offset is UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import lru_cache

from pricing.catalogues.prices import says_nothing


class UnclearDatesError(Exception):
    """The text is not two times, the earlier first."""


def price_now(usual: str, sale: str, dates: str, now: datetime) -> str:
    """The text of the price that counts at `now`. Raises UnclearDatesError."""
    if not sale or says_nothing(sale):
        return usual
    if not dates:
        return sale
    begins, ends = window(dates)
    return sale if begins <= now < ends else usual


@lru_cache(maxsize=1024)  # a shop's sales begin and end together
def window(dates: str) -> tuple[datetime, datetime]:
    """From when to when, the end excluded. Raises UnclearDatesError."""
    try:
        begin, end = (part.strip() for part in dates.split("/"))
        begins, ends = _moment(begin, last=False), _moment(end, last=True)
    except (ValueError, OverflowError):
        begins, ends = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
    if begins >= ends:
        message = "A sale's dates are two times with a slash between, such as 2030-02-24T13:00Z/2030-02-28T15:30Z."
        raise UnclearDatesError(message)
    return begins, ends


def _moment(text: str, *, last: bool) -> datetime:
    moment = datetime.fromisoformat(text)
    if len(text) <= len("2030-02-24"):
        moment = datetime.combine(moment, time()) + timedelta(days=last)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
