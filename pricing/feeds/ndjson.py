"""NDJSON: one canonical observation in each line. Pure; imports no models.

Guarantee: reads what canonical.py reads and refuses what it refuses, with the line's number before the field's name.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pricing.feeds.canonical import Delivery, check_count, read_one
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import parse


def adapt(body: bytes, *, merchant_id: str, now: datetime) -> Delivery:
    """Read the lines in their order; empty ones are left out. Raises FeedError for the first thing wrong."""
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), start=1) if line.strip()]
    if not lines:
        raise FeedError(422, "invalid_observations", "Send at least one line with an observation.")
    check_count(len(lines), None)
    observations, where, ignored = [], [], 0
    for number, line in lines:
        path = f"line {number}: "
        observation, unknown = read_one(_document(line, number), merchant_id=merchant_id, now=now, at=path)
        observations.append(observation)
        where.append(path)
        ignored += unknown
    return Delivery(observations, where, None, ignored)


def _document(line: bytes, number: int) -> Any:
    try:
        return parse(line)
    except FeedError as error:
        place = f"line {number}" if error.field is None else f"line {number}: {error.field}"
        raise FeedError(error.status, error.code, error.message, field=place) from None
