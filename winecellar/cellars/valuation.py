"""The nightly valuation: what each cellar was worth as of a night's slot. The only SQL that writes valuations.

Guarantee: at most one row for each cellar and day, each from the same frozen prices and rates; a run that stopped
anywhere goes on where it stopped, and a run that lost its lock writes nothing more. Called by the job
`value-cellars`, and by the demo.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from django.conf import settings
from django.db import connection

from jobs.messages import dumps
from winecellar.cellars.models import Cellar
from winecellar.cellars.rates import rates_on
from winecellar.cellars.rules import Source

Fenced = Callable[[], AbstractContextManager[Any]]
Progress = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Valued:
    """What one run, or one chunk of it, did. `no_rate`: cellars in a currency of which no rate is known."""

    cellars: int = 0
    bottles: int = 0
    without_value: int = 0
    no_rate: int = 0


def value_cellars(*, slot: datetime, fenced: Fenced, progress: Progress, now: datetime) -> Valued:
    """Value every cellar that has no valuation of the slot's day yet.

    `fenced` opens the transaction of each chunk, and raises if this run may no longer write. `progress(done, total,
    **counts)` is told after each.
    """
    day, done, after = slot.date(), Valued(), 0
    with fenced():
        _freeze(day, slot, now)
    total = Cellar.objects.count()
    looked_at = Cellar.objects.filter(valuations__day=day).count()  # by the run that stopped
    while True:
        with fenced():
            last, looked, chunk = _value_chunk(day, after, now)
        if last is None:
            break
        after, looked_at = last, looked_at + looked
        done = _add(done, chunk)
        progress(looked_at, max(total, looked_at), cellars=done.cellars, bottles=done.bottles, **_doubts(done))
    with fenced():
        _forget(day - settings.VALUATION_DETAIL_RETENTION)
    return done


def _add(one: Valued, other: Valued) -> Valued:
    return replace(
        one,
        cellars=one.cellars + other.cellars,
        bottles=one.bottles + other.bottles,
        without_value=one.without_value + other.without_value,
        no_rate=one.no_rate + other.no_rate,
    )


def _doubts(done: Valued) -> dict[str, int]:
    return {"without_value": done.without_value, "no_rate": done.no_rate}


# --- Frozen before the first cellar ----------------------------------------------------------------------------

FREEZE_NIGHT = """
INSERT INTO cellars_night (day, slot, rates, frozen_at) VALUES (%(day)s, %(slot)s, %(rates)s::jsonb, %(now)s)
ON CONFLICT (day) DO NOTHING
"""
# An offer that changed after the slot stood until then at what the history says; the offer is ahead of the history,
# never behind it. A wine whose offers nobody has confirmed for long has a last known price, and its age.
FREEZE_PRICES = """
INSERT INTO cellars_nightprice (day, wine_id, size_ml, offer_usd, last_usd, last_seen_on)
SELECT %(day)s, wine_id, size_ml, offer_usd, CASE WHEN offer_usd IS NULL THEN last_usd END,
       CASE WHEN offer_usd IS NULL THEN last_seen_at::date END
FROM (
    SELECT wine_id, min(price_usd) FILTER (WHERE seen_at >= %(fresh_since)s) AS offer_usd,
           (array_agg(price_usd ORDER BY seen_at DESC, price_usd))[1] AS last_usd, max(seen_at) AS last_seen_at
    FROM (
        SELECT wine_id, price_usd, seen_at FROM pricing_offer WHERE occurred_at <= %(slot)s
        UNION ALL
        SELECT o.wine_id, stood.price_usd, %(slot)s FROM pricing_offer o CROSS JOIN LATERAL (
            SELECT h.price_usd FROM pricing_pricehistory h
            WHERE h.wine_id = o.wine_id AND h.merchant_id = o.merchant_id AND NOT h.late AND h.observed_at <= %(slot)s
            ORDER BY h.observed_at DESC, h.id DESC LIMIT 1
        ) stood
        WHERE o.occurred_at > %(slot)s
    ) asked
    GROUP BY wine_id
) standing JOIN pricing_wine wine ON wine.id = standing.wine_id
"""


def _freeze(day: date, slot: datetime, now: datetime) -> None:
    """Keep the night's rates and prices, unless an earlier run has."""
    rates = {currency: f"{rate:f}" for currency, rate in rates_on(day).items()}
    with connection.cursor() as cursor:
        cursor.execute(FREEZE_NIGHT, {"day": day, "slot": slot, "rates": dumps(rates), "now": now})
        if cursor.rowcount:
            fresh_since = slot - settings.VALUATION_OFFER_FRESH
            cursor.execute(FREEZE_PRICES, {"day": day, "slot": slot, "fresh_since": fresh_since})


# --- A chunk of cellars ----------------------------------------------------------------------------------------

# The cascade is rules.worth, set-wise. nullif: what rounds to nothing is no value.
VALUE_CHUNK = """
WITH rate AS MATERIALIZED (
    SELECT key AS currency, value::numeric AS per_usd
    FROM cellars_night, LATERAL jsonb_each_text(rates) WHERE day = %(day)s
), due AS MATERIALIZED (
    SELECT id, currency, scales_by_size, per_usd FROM (
        SELECT c.id, c.currency, c.scales_by_size FROM cellars_cellar c
        WHERE c.id > %(after)s
          AND NOT EXISTS (SELECT FROM cellars_valuation v WHERE v.cellar_id = c.id AND v.day = %(day)s)
        ORDER BY c.id LIMIT %(chunk)s
    ) next LEFT JOIN rate USING (currency)
), line AS (
    SELECT due.id AS cellar_id, b.id AS bottle_id, b.quantity, coalesce(by_owner, by_offer, by_paid) AS unit,
           CASE WHEN by_owner IS NOT NULL THEN %(own)s
                WHEN by_offer IS NOT NULL THEN CASE WHEN p.offer_usd IS NULL THEN %(last_offer)s ELSE %(offer)s END
                WHEN by_paid IS NOT NULL THEN %(paid)s ELSE %(none)s END AS source,
           CASE WHEN by_owner IS NULL AND by_offer IS NOT NULL THEN p.last_seen_on END AS seen_on
    FROM due
    JOIN cellars_bottle b ON b.cellar_id = due.id AND b.quantity > 0
    LEFT JOIN (SELECT *, coalesce(offer_usd, last_usd) AS usd FROM cellars_nightprice WHERE day = %(day)s) p
      ON p.wine_id = b.wine_id AND (p.size_ml = b.size_ml OR due.scales_by_size)
    LEFT JOIN rate own ON own.currency = b.own_currency
    LEFT JOIN rate paid ON paid.currency = b.paid_currency
    CROSS JOIN LATERAL (SELECT
        nullif(CASE WHEN b.own_currency = due.currency THEN b.own_value
                    ELSE round(b.own_value * due.per_usd / own.per_usd, 2) END, 0) AS by_owner,
        nullif(round(CASE WHEN p.size_ml = b.size_ml THEN p.usd * due.per_usd
                          ELSE p.usd * b.size_ml / p.size_ml * due.per_usd END, 2), 0) AS by_offer,
        nullif(CASE WHEN b.paid_currency = due.currency THEN b.paid
                    ELSE round(b.paid * due.per_usd / paid.per_usd, 2) END, 0) AS by_paid
    ) worth
), valued AS MATERIALIZED (
    SELECT due.id AS cellar_id, due.currency, due.per_usd, line.*
    FROM due LEFT JOIN (
        SELECT cellar_id AS of, sum(quantity * unit) AS value, sum(quantity) AS bottles,
               sum(quantity) FILTER (WHERE unit IS NULL) AS without_value, array_agg(bottle_id) AS bottle_ids,
               array_agg(quantity) AS quantities, array_agg(unit) AS unit_values, array_agg(source) AS sources,
               array_agg(seen_on) AS seen_on
        FROM line GROUP BY cellar_id
    ) line ON line.of = due.id
    WHERE due.per_usd IS NOT NULL
), totals AS (
    INSERT INTO cellars_valuation (cellar_id, day, currency, usd_rate, value, bottles, without_value, valued_at)
    SELECT cellar_id, %(day)s, currency, per_usd, coalesce(value, 0), coalesce(bottles, 0), coalesce(without_value, 0),
           %(now)s
    FROM valued
    ON CONFLICT (cellar_id, day) DO NOTHING
    RETURNING cellar_id, bottles, without_value
), lines AS (
    INSERT INTO cellars_valuationlines (cellar_id, day, bottle_ids, quantities, unit_values, sources, seen_on)
    SELECT cellar_id, %(day)s, bottle_ids, quantities, unit_values, sources, valued.seen_on
    FROM valued JOIN totals USING (cellar_id) WHERE bottle_ids IS NOT NULL
)
SELECT (SELECT max(id) FROM due), (SELECT count(*) FROM due), (SELECT count(*) FROM due WHERE per_usd IS NULL),
       count(*), coalesce(sum(bottles), 0), coalesce(sum(without_value), 0)
FROM totals
"""
SOURCES = {
    "own": Source.OWN.value,
    "offer": Source.OFFER.value,
    "last_offer": Source.LAST_OFFER.value,
    "paid": Source.PAID.value,
    "none": Source.NONE.value,
}


def _value_chunk(day: date, after: int, now: datetime) -> tuple[int | None, int, Valued]:
    """Value the next cellars after that id: the last one's id (None: there was none), how many, and what was done."""
    with connection.cursor() as cursor:
        cursor.execute(
            VALUE_CHUNK, {"day": day, "after": after, "chunk": settings.VALUATION_CHUNK, "now": now, **SOURCES}
        )
        last, looked, no_rate, cellars, bottles, without_value = cursor.fetchone()
    return last, looked, Valued(cellars, int(bottles), int(without_value), no_rate)


def _forget(before: date) -> None:
    """Lines and prices of nights that no page explains any more."""
    with connection.cursor() as cursor:
        for table in ("cellars_valuationlines", "cellars_nightprice"):
            cursor.execute(f"DELETE FROM {table} WHERE day < %s", [before])  # noqa: S608  # two names of ours
