"""Ninety days of a wine's best price as a small line, for many wines at once: 2 queries, whatever their number.

The history is a projection and may be seconds behind; a line 120 pixels wide does not show it. Called by selectors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection

from pricing.selectors import CHART_PERIOD
from pricing.timeline import Observation, Step, best_price_steps

WIDTH, HEIGHT = 120, 28

# What each merchant asked when the period began, and what it asked, or that it left, since.
FIND = """
SELECT wine.id, seen.at, seen.merchant_id, seen.price_usd
FROM unnest(%(wines)s::text[]) AS wine (id),
LATERAL (
    (SELECT DISTINCT ON (merchant_id) %(since)s::timestamptz AS at, merchant_id, price_usd, 0 AS place, id
     FROM pricing_pricehistory WHERE wine_id = wine.id AND observed_at <= %(since)s AND NOT late
     ORDER BY merchant_id, observed_at DESC, id DESC)
    UNION ALL
    (SELECT DISTINCT ON (merchant_id) %(since)s::timestamptz, merchant_id, price_usd, 1, id
     FROM pricing_availability WHERE wine_id = wine.id AND observed_at <= %(since)s
     ORDER BY merchant_id, observed_at DESC, id DESC)
    UNION ALL
    SELECT observed_at, merchant_id, price_usd, 0, id FROM pricing_pricehistory
    WHERE wine_id = wine.id AND observed_at > %(since)s AND observed_at <= %(until)s AND NOT late
    UNION ALL
    SELECT observed_at, merchant_id, price_usd, 1, id FROM pricing_availability
    WHERE wine_id = wine.id AND observed_at > %(since)s AND observed_at <= %(until)s
) seen
ORDER BY wine.id, seen.at, seen.place, seen.id
"""


@dataclass(frozen=True, slots=True)
class Sparkline:
    """`path` in a box of WIDTH by HEIGHT; the figures say the same to whoever cannot see it. In dollars."""

    path: str
    low: Decimal
    high: Decimal
    width: int = WIDTH
    height: int = HEIGHT


def observations(wine_ids: Collection[str], *, now: datetime) -> dict[str, list[Observation]]:
    """What was asked for these wines over the chart's period: 1 query, or none."""
    found: dict[str, list[Observation]] = defaultdict(list)
    if wine_ids:
        with connection.cursor() as cursor:
            cursor.execute(FIND, {"wines": list(wine_ids), "since": now - CHART_PERIOD, "until": now})
            for wine_id, at, merchant_id, price in cursor.fetchall():
                found[wine_id].append(Observation(at, merchant_id, price))
    return found


def draw(seen: Collection[Observation], *, merchant_id: str | None, now: datetime) -> Sparkline | None:
    """One alert's line, of its merchant or of all; None where nobody asked anything."""
    since = now - CHART_PERIOD
    relevant = [each for each in seen if merchant_id in (None, each.merchant_id)]
    steps = best_price_steps(relevant, since=since, until=now)
    if not steps:
        return None
    low, high = min(step.price_usd for step in steps), max(step.price_usd for step in steps)
    return Sparkline(_path(steps, low, high, since, now), low, high)


def _path(steps: list[Step], low: Decimal, high: Decimal, since: datetime, until: datetime) -> str:
    def x(at: datetime) -> float:
        return round((at - since) / (until - since) * WIDTH, 1)

    def y(price: Decimal) -> float:
        part = (price - low) / (high - low) if high > low else Decimal("0.5")
        return round(float(1 - part) * (HEIGHT - 4) + 2, 1)

    parts: list[str] = []
    joined = False
    for step in steps:
        parts.append(f"H{x(step.at):g}V{y(step.price_usd):g}" if joined else f"M{x(step.at):g} {y(step.price_usd):g}")
        joined = step.until is None
        if step.until is not None:
            parts.append(f"H{x(step.until):g}")
    return "".join(parts) + (f"H{WIDTH}" if joined else "")
