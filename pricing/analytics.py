"""Prices by the day, kept by the `analytics-rollup` subscription, read by pages. The only SQL on pricing_dailyprice.

Guarantee: an event that comes twice, or after a later one of its merchant, leaves the rows as if it had come once and
in time, but for a low that somebody could have bought at. `rebuild` makes a wine's rows again from its history. Both
take the table's lock before they read, so that neither writes over what the other has just done.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, transaction

from jobs.messages import Message, dumps
from pricing.daily import WEEK, YEAR, Asked, Day, Ledger, Standing
from pricing.events import OFFER_RETURNED, OFFER_WITHDRAWN, AvailabilityChanged, PriceChanged
from pricing.models import Availability, DailyPrice, Offer, PriceHistory, Wine
from pricing.timeline import Observation

WINES_AT_ONCE = 1_000
FIGURES = ("low", "high", "close", "average", "offers")
Days = dict[str, list[Day]]
Seen = dict[str, list[Observation]]

ENTERING = "LOCK TABLE pricing_dailyprice IN ROW EXCLUSIVE MODE"
REBUILDING = "LOCK TABLE pricing_dailyprice IN SHARE ROW EXCLUSIVE MODE"
# Of each wine the rows from a day on, and the last before it.
READ = """
SELECT d.wine_id, d.day, d.low, d.high, d.close, d.average, d.offers, d.asked::text
FROM jsonb_to_recordset(%s::jsonb) AS since (wine_id text, day date)
JOIN pricing_dailyprice d ON d.wine_id = since.wine_id AND d.day >= coalesce(
    (SELECT max(b.day) FROM pricing_dailyprice b WHERE b.wine_id = since.wine_id AND b.day < since.day), since.day)
ORDER BY d.wine_id, d.day
"""
UPSERT = """
INSERT INTO pricing_dailyprice (wine_id, day, low, high, close, average, offers, asked)
SELECT wine_id, day, low, high, close, average, offers, asked FROM jsonb_to_recordset(%s::jsonb) AS d (
    wine_id text, day date, low numeric, high numeric, close numeric, average numeric, offers integer, asked jsonb)
ON CONFLICT (wine_id, day) DO UPDATE SET low = excluded.low, high = excluded.high, close = excluded.close,
    average = excluded.average, offers = excluded.offers, asked = excluded.asked
"""
STANDING = """
SELECT d.wine_id, d.day, d.low, d.high, d.close, d.average, d.offers FROM unnest(%(wines)s::text[]) AS w (id)
JOIN pricing_dailyprice d ON d.wine_id = w.id AND d.day >= coalesce(
    (SELECT max(b.day) FROM pricing_dailyprice b WHERE b.wine_id = w.id AND b.day < %(since)s), %(since)s)
WHERE d.day <= %(until)s ORDER BY d.wine_id, d.day
"""
EVER = """
SELECT DISTINCT ON (wine_id) wine_id, low, day FROM pricing_dailyprice
WHERE wine_id = ANY(%s) AND low IS NOT NULL ORDER BY wine_id, low, day
"""
# Of each wine what it costs and what it cost at the end of a day; those that then or now nobody offers are left out.
FALLEN = """
SELECT w.id, latest.close, before.close FROM unnest(%(wines)s::text[]) AS w (id),
LATERAL (SELECT close FROM pricing_dailyprice WHERE wine_id = w.id ORDER BY day DESC LIMIT 1) latest,
LATERAL (SELECT close FROM pricing_dailyprice WHERE wine_id = w.id AND day <= %(day)s ORDER BY day DESC LIMIT 1) before
WHERE latest.close < before.close ORDER BY latest.close / before.close, w.id LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Fall:
    """A wine that costs less than it did."""

    wine_id: str
    now: Decimal
    before: Decimal

    @property
    def percent(self) -> Decimal:
        return (self.before - self.now) / self.before * 100


# --- Reading ---------------------------------------------------------------------------------------------------


def standing(wine_ids: Iterable[str], *, now: datetime) -> dict[str, Standing]:
    """What each of these wines cost within a year, and the lowest ever: 2 queries. Every wine named is in the answer.

    Meant for the wines of one page. It is as of the last event that was entered, a moment behind the offers.
    """
    wines, today = list(wine_ids), now.astimezone(UTC).date()
    days: Days = defaultdict(list)
    with connection.cursor() as cursor:
        since = today - timedelta(days=YEAR)
        cursor.execute(STANDING, {"wines": wines, "since": since, "until": today + timedelta(days=1)})
        for wine_id, *figures in cursor.fetchall():
            days[wine_id].append(Day(*figures))
        cursor.execute(EVER, [wines])
        ever = {wine_id: (low, day) for wine_id, low, day in cursor.fetchall()}
    return {wine_id: Standing(today, days[wine_id], *ever.get(wine_id, (None, None))) for wine_id in wines}


def all_days(wine_id: str) -> list[Day]:
    """Every row of a wine, in order, without what each merchant asked: 1 query."""
    rows = DailyPrice.objects.filter(wine_id=wine_id).order_by("day")
    return [Day(*row) for row in rows.values_list("day", *FIGURES)]


def biggest_falls(wine_ids: Iterable[str], *, now: datetime, most: int, days: int = WEEK) -> list[Fall]:
    """Of these wines those whose best price fell most, in per cent, since so many days ago: 1 query."""
    day = now.astimezone(UTC).date() - timedelta(days=days)
    with connection.cursor() as cursor:
        cursor.execute(FALLEN, {"wines": list(wine_ids), "day": day, "most": most})
        return [Fall(*row) for row in cursor.fetchall()]


# --- Keeping ---------------------------------------------------------------------------------------------------


def check(message: Message) -> None:
    """Raises PermanentError for a message that `enter` would refuse."""
    _read(message)


def enter(messages: Sequence[Message]) -> None:
    """Handle price events and the ends and returns of offers. Raises PermanentError for a malformed one."""
    seen: Seen = defaultdict(list)
    for message in messages:
        wine_id, observation = _read(message)
        seen[wine_id].append(observation)
    with connection.cursor() as cursor:
        cursor.execute(ENTERING)
    days = _days_from({wine_id: min(each.at for each in some) for wine_id, some in seen.items()})
    _write(_entered(seen, days))


def rebuild(wine_ids: Sequence[str] | None = None, *, progress: Callable[[int, int], None] | None = None) -> int:
    """Make the rows of these wines, or of all, again from history and offers; a thousand wines in one transaction.

    Returns how many rows there are now. Of what is published and not yet in the history only the offer's price counts.
    """
    wines = sorted(wine_ids) if wine_ids is not None else list(Wine.objects.order_by("pk").values_list("pk", flat=True))
    rows = 0
    for start in range(0, len(wines), WINES_AT_ONCE):
        some = wines[start : start + WINES_AT_ONCE]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(REBUILDING)
            DailyPrice.objects.filter(wine__in=some).delete()
            rows += _write(_entered(_history(some), {}))
        if progress:
            progress(min(start + WINES_AT_ONCE, len(wines)), len(wines))
    return rows


def _read(message: Message) -> tuple[str, Observation]:
    if message.type in {OFFER_WITHDRAWN, OFFER_RETURNED}:
        change = AvailabilityChanged.parse(message)
        price = change.price_usd if change.offered else None
        return change.wine_id, Observation(change.occurred_at, change.merchant_id, price)
    event = PriceChanged.parse(message)
    return event.wine_id, Observation(event.occurred_at, event.merchant_id, event.new_price_usd)


def _history(wine_ids: list[str]) -> Seen:
    """All that is known of these wines, in the order of time; of one time what came first was said first."""
    seen: Seen = defaultdict(list)
    columns = ("wine_id", "observed_at", "merchant_id", "price_usd")
    prices = PriceHistory.objects.filter(wine__in=wine_ids, late=False).order_by("id")
    gaps = Availability.objects.filter(wine__in=wine_ids).order_by("id")
    for rows in (prices, gaps):
        for wine_id, *observation in rows.values_list(*columns).iterator():
            seen[wine_id].append(Observation(*observation))
    for offer in Offer.objects.filter(wine__in=wine_ids):
        if not offer.withdrawn_at:
            seen[offer.wine_id].append(Observation(offer.occurred_at, offer.merchant_id, offer.price_usd))
        else:
            seen[offer.wine_id].append(Observation(offer.withdrawn_at, offer.merchant_id, None))
    for observations in seen.values():
        observations.sort(key=lambda each: each.at)
    return seen


def _entered(seen: Seen, days: Days) -> Iterator[tuple[str, Day]]:
    for wine_id in sorted(seen):
        ledger = Ledger(days.get(wine_id, ()))
        for observation in seen[wine_id]:
            ledger.enter(observation)
        for day in ledger.changed:
            yield wine_id, day


def _days_from(since: Mapping[str, datetime]) -> Days:
    wanted = [{"wine_id": wine_id, "day": _day(at).isoformat()} for wine_id, at in since.items()]
    days: Days = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(READ, [dumps(wanted)])
        for wine_id, *figures, asked in cursor.fetchall():
            days[wine_id].append(Day(*(*figures, _asked(asked))))
    return days


def _write(rows: Iterable[tuple[str, Day]]) -> int:
    said = [
        {
            "wine_id": wine_id,
            "day": day.day.isoformat(),
            **{name: getattr(day, name) for name in FIGURES},
            "asked": {merchant: [each.at.isoformat(), each.price_usd] for merchant, each in day.asked.items()},
        }
        for wine_id, day in rows
    ]
    with connection.cursor() as cursor:
        cursor.execute(UPSERT, [dumps(said)])
    return len(said)


def _asked(text: str) -> dict[str, Asked]:
    said: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return {merchant: Asked(datetime.fromisoformat(at), price) for merchant, (at, price) in said.items()}


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
