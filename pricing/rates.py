"""The exchange rates in the database: read for intake, written by `manage.py load_rates`.

Guarantee: a day's rate is that of the last published day not after it, since nothing is published on weekends and
holidays, and at most FEED_RATE_MAX_AGE old. Loading twice changes nothing. Called by services, what
listings calls, holds and the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date
from decimal import Decimal
from itertools import islice

from django.conf import settings
from django.db import connection, transaction

from jobs.messages import dumps
from pricing.ecb import Published
from pricing.exchange import Rate
from pricing.rules import Observation

ROWS_AT_ONCE = 20_000
LONG_AGO_DAYS = 36_500

# One row a currency and day; the euro's own are 1, so that it is a currency like the others.
FIND = """
SELECT want.currency, want.day, found.*
FROM jsonb_to_recordset(%(wanted)s::jsonb) AS want (currency text, day date)
CROSS JOIN LATERAL (
    SELECT theirs.day, theirs.per_eur, dollar.per_eur
    FROM pricing_exchangerate theirs JOIN pricing_exchangerate dollar ON dollar.day = theirs.day
    WHERE theirs.currency = want.currency AND dollar.currency = 'USD'
      AND theirs.day BETWEEN want.day - %(days)s::int AND want.day
    ORDER BY theirs.day DESC LIMIT 1
) found
"""
UPSERT = """
INSERT INTO pricing_exchangerate AS kept (day, currency, per_eur, source)
SELECT day, currency, per_eur, %(source)s
FROM jsonb_to_recordset(%(rates)s::jsonb) AS new (day date, currency text, per_eur numeric)
ON CONFLICT (currency, day) DO UPDATE SET per_eur = excluded.per_eur, source = excluded.source
    WHERE kept.per_eur <> excluded.per_eur
RETURNING xmax = 0
"""


@dataclass(frozen=True)
class Loaded:
    """How many rates were new, corrected, or known already."""

    added: int
    corrected: int
    known: int


def convert(observations: Sequence[Observation], *, any_age: bool = False) -> list[Observation]:
    """The observations with their prices in dollars, where a rate is known; 1 query, or none if all are in dollars.

    `any_age`: take the last rate however old it is.
    """
    foreign = [seen for seen in observations if seen.native_currency]
    if not foreign:
        return list(observations)
    rates = find({(seen.native_currency, _day(seen)) for seen in foreign}, any_age=any_age)
    return [_converted(seen, rates.get((seen.native_currency, _day(seen)))) for seen in observations]


def cheapest(asked: Iterable[Observation]) -> dict[str, Observation]:
    """The lowest of the prices of each wine. Several currencies are compared in dollars: 1 query, or none.

    What has no rate comes after all that has one. Of equal ones the first stays.
    """
    of_wines: dict[str, list[Observation]] = {}
    for seen in asked:
        of_wines.setdefault(seen.wine_id, []).append(seen)
    mixed = [seen for some in of_wines.values() if len({seen.asked[0] for seen in some}) > 1 for seen in some]
    dollars = dict(zip(mixed, convert(mixed), strict=True))

    def height(seen: Observation) -> tuple[bool, Decimal]:
        """In dollars where there is a choice of money, else the amount, which means little without rates."""
        price = dollars[seen].price_usd if seen in dollars else seen.price_usd
        return price is None, price or seen.native_price or Decimal(0)

    return {wine_id: min(some, key=height) for wine_id, some in of_wines.items()}


def find(wanted: Iterable[tuple[str, date]], *, any_age: bool = False) -> dict[tuple[str, date], Rate]:
    """The rates that hold for these currencies on these days, where there are any: 1 query."""
    rows = [{"currency": currency, "day": day.isoformat()} for currency, day in wanted]
    days = LONG_AGO_DAYS if any_age else settings.FEED_RATE_MAX_AGE.days
    with connection.cursor() as cursor:
        cursor.execute(FIND, {"wanted": dumps(rows), "days": days})
        return {(currency, day): Rate(*found) for currency, day, *found in cursor.fetchall()}


def store(published: Iterable[Published], *, source: str) -> Loaded:
    """Keep what was published; all of it or nothing."""
    total, fresh = 0, []
    rows = ({"day": rate.day.isoformat(), "currency": rate.currency, "per_eur": rate.per_eur} for rate in published)
    with transaction.atomic(), connection.cursor() as cursor:
        for chunk in _chunks(rows):
            cursor.execute(UPSERT, {"rates": dumps(chunk), "source": source})
            fresh += [is_new for (is_new,) in cursor.fetchall()]
            total += len(chunk)
    return Loaded(added=sum(fresh), corrected=len(fresh) - sum(fresh), known=total - len(fresh))


def _day(seen: Observation) -> date:
    return seen.occurred_at.astimezone(UTC).date()


def _converted(seen: Observation, rate: Rate | None) -> Observation:
    if rate is None or seen.native_price is None:
        return seen
    return replace(seen, price_usd=rate.to_usd(seen.native_price))


def _chunks(rows: Iterator[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
    while chunk := list(islice(rows, ROWS_AT_ONCE)):
        yield chunk
