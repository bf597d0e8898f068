"""The nightly valuation: what each cellar was worth as of a night's slot. The only SQL that writes valuations.

Guarantee: at most one row for each cellar and day, each from the same frozen prices and rates; a run that stopped
anywhere goes on where it stopped, and a run that lost its lock writes nothing more. Called by the job
`value-cellars`, and by the demo.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

from django.conf import settings
from django.db import connection

from jobs.messages import dumps
from winecellar.cellars.models import Cellar, Night
from winecellar.cellars.rates import rates_on
from winecellar.cellars.rules import Source

Fenced = Callable[[], AbstractContextManager[Any]]
Progress = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Valued:
    """What one run, or one chunk of it, did. A cellar in a currency of which no rate is known is not valued."""

    cellars: int = 0
    bottles: int = 0
    without_value: int = 0

    def plus(self, other: Valued) -> Valued:
        return Valued(
            self.cellars + other.cellars, self.bottles + other.bottles, self.without_value + other.without_value
        )


def value_cellars(*, slot: datetime, fenced: Fenced, progress: Progress, now: datetime) -> Valued:
    """Value every cellar that has no valuation of the slot's day yet.

    `fenced` opens the transaction of each chunk, and raises if this run may no longer write. `progress(done, total,
    **counts)` is told after each.
    """
    day, done = slot.date(), Valued()
    with fenced():
        _freeze(day, slot, now)
    looked_at = Cellar.objects.filter(pk__lte=Night.objects.get(pk=day).valued_to).count()  # by the run that stopped
    total = Cellar.objects.count()
    while True:
        with fenced():
            looked, chunk = _value_chunk(day, now)
        if not looked:
            break
        looked_at, done = looked_at + looked, done.plus(chunk)
        progress(looked_at, max(total, looked_at), **asdict(done))
    with fenced():
        _forget(day - settings.VALUATION_DETAIL_RETENTION)
    return done


# --- Frozen before the first cellar ----------------------------------------------------------------------------

FREEZE_NIGHT = """
INSERT INTO cellars_night (day, slot, rates, frozen_at, valued_to)
VALUES (%(day)s, %(slot)s, %(rates)s::jsonb, %(now)s, 0)
ON CONFLICT (day) DO NOTHING
"""
# What a merchant asked as of the slot: the offer, if it is no newer, else what the history says; in other money, at
# this night's rate and not at that of the day it was named. It stands unless it was withdrawn by then, which the offer
# says, or the gaps of the history, if it came back meanwhile. A wine without a fresh offer has a last known one.
FREEZE_PRICES = """
WITH rate AS MATERIALIZED (
    SELECT key AS currency, value::numeric AS per_usd
    FROM cellars_night, LATERAL jsonb_each_text(rates) WHERE day = %(day)s
), asked AS (
    SELECT wine_id, merchant_id, coalesce(round(native_price / per_usd, 8), price_usd) AS usd,
           least(seen_at, %(slot)s) AS seen_at, CASE WHEN withdrawn_at <= %(slot)s THEN withdrawn_at END AS gone_at
    FROM pricing_offer LEFT JOIN rate ON currency = native_currency WHERE occurred_at <= %(slot)s
    UNION ALL
    SELECT o.wine_id, o.merchant_id, stood.price_usd, %(slot)s, NULL FROM pricing_offer o CROSS JOIN LATERAL (
        SELECT h.price_usd FROM pricing_pricehistory h
        WHERE h.wine_id = o.wine_id AND h.merchant_id = o.merchant_id AND NOT h.late AND h.observed_at <= %(slot)s
        ORDER BY h.observed_at DESC, h.id DESC LIMIT 1
    ) stood
    WHERE o.occurred_at > %(slot)s
), standing AS (
    SELECT asked.wine_id, usd, seen_at, coalesce(asked.gone_at, gap.gone_at) AS gone_at
    FROM asked LEFT JOIN LATERAL (
        SELECT CASE WHEN a.price_usd IS NULL THEN a.observed_at END AS gone_at FROM pricing_availability a
        WHERE a.wine_id = asked.wine_id AND a.merchant_id = asked.merchant_id AND a.observed_at <= %(slot)s
        ORDER BY a.observed_at DESC, a.id DESC LIMIT 1
    ) gap ON true
)
INSERT INTO cellars_nightprice (day, wine_id, size_ml, offer_usd, last_usd, last_seen_on)
SELECT %(day)s, wine_id, size_ml, offer_usd, CASE WHEN offer_usd IS NULL THEN last_usd END,
       CASE WHEN offer_usd IS NULL THEN last_at::date END
FROM (
    SELECT wine_id, min(usd) FILTER (WHERE gone_at IS NULL AND seen_at >= %(fresh_since)s) AS offer_usd,
           (array_agg(usd ORDER BY coalesce(gone_at, seen_at) DESC, usd))[1] AS last_usd,
           max(coalesce(gone_at, seen_at)) AS last_at
    FROM standing GROUP BY wine_id
) of_wine JOIN pricing_wine wine ON wine.id = of_wine.wine_id
"""


def _freeze(day: date, slot: datetime, now: datetime) -> None:
    """Keep the night's rates and prices, unless an earlier run has."""
    rates = {currency: f"{rate:f}" for currency, rate in rates_on(day).items()}
    with connection.cursor() as cursor:
        cursor.execute(FREEZE_NIGHT, {"day": day, "slot": slot, "rates": dumps(rates), "now": now})
        if cursor.rowcount:
            fresh_since = slot - settings.VALUATION_OFFER_FRESH
            cursor.execute(FREEZE_PRICES, {"day": day, "slot": slot, "fresh_since": fresh_since})
            # A day that the statistics do not know looks like one row: the plan for that took a chunk half a minute.
            cursor.execute("SELECT jobs_analyze('{cellars_nightprice}')")


# --- A chunk of cellars ----------------------------------------------------------------------------------------

# Moves the night's mark over the next cellars; a second run of the night, should there be one, waits for its row.
NEXT_CELLARS = """
WITH mark AS MATERIALIZED (SELECT valued_to FROM cellars_night WHERE day = %(day)s FOR NO KEY UPDATE),
next AS (SELECT id FROM cellars_cellar WHERE id > (SELECT valued_to FROM mark) ORDER BY id LIMIT %(chunk)s)
UPDATE cellars_night SET valued_to = (SELECT max(id) FROM next)
WHERE day = %(day)s AND EXISTS (SELECT FROM next)
RETURNING (SELECT valued_to FROM mark), valued_to, (SELECT count(*) FROM next)
"""
# The cascade is rules.worth, set-wise. nullif: what rounds to nothing is no value. One range of cellars and one
# aggregate over one join: the planner knows how many rows there are, and can do nothing once per row. OFFSET 0: what a
# bottle is worth is worked out once, not wherever it is named; another money's rate only where it is needed.
VALUE_CELLARS = """
WITH line AS (
    SELECT c.id AS cellar_id, c.currency, per_usd, b.id AS bottle_id, b.quantity,
           coalesce(by_owner, by_offer, by_paid) AS unit,
           CASE WHEN by_owner IS NOT NULL THEN %(own)s
                WHEN by_offer IS NOT NULL THEN CASE WHEN p.offer_usd IS NULL THEN %(last_offer)s ELSE %(offer)s END
                WHEN by_paid IS NOT NULL THEN %(paid)s ELSE %(none)s END AS source,
           CASE WHEN by_owner IS NULL AND by_offer IS NOT NULL THEN p.last_seen_on END AS seen_on
    FROM cellars_night night
    CROSS JOIN cellars_cellar c
    CROSS JOIN LATERAL (SELECT (rates ->> c.currency)::numeric AS per_usd OFFSET 0) here
    LEFT JOIN cellars_bottle b
      ON b.cellar_id = c.id AND b.quantity > 0
    LEFT JOIN (SELECT *, coalesce(offer_usd, last_usd) AS usd FROM cellars_nightprice WHERE day = %(day)s) p
      ON p.wine_id = b.wine_id AND (p.size_ml = b.size_ml OR c.scales_by_size)
    CROSS JOIN LATERAL (SELECT
        nullif(CASE WHEN b.own_value IS NULL OR b.own_currency = c.currency THEN b.own_value
                    ELSE round(b.own_value * per_usd / (rates ->> b.own_currency)::numeric, 2) END, 0) AS by_owner,
        nullif(round(CASE WHEN p.size_ml = b.size_ml THEN p.usd * per_usd
                          ELSE p.usd * b.size_ml / p.size_ml * per_usd END, 2), 0) AS by_offer,
        nullif(CASE WHEN b.paid IS NULL OR b.paid_currency = c.currency THEN b.paid
                    ELSE round(b.paid * per_usd / (rates ->> b.paid_currency)::numeric, 2) END, 0) AS by_paid
        OFFSET 0
    ) worth
    WHERE night.day = %(day)s AND c.id > %(after)s AND c.id <= %(last)s AND per_usd IS NOT NULL
), valued AS MATERIALIZED (
    SELECT cellar_id, min(currency) AS currency, min(per_usd) AS per_usd, coalesce(sum(quantity * unit), 0) AS value,
           coalesce(sum(quantity), 0) AS bottles,
           coalesce(sum(quantity) FILTER (WHERE unit IS NULL), 0) AS without_value,
           array_agg(bottle_id) AS bottle_ids, array_agg(quantity) AS quantities, array_agg(unit) AS unit_values,
           array_agg(source) AS sources, array_agg(seen_on) AS seen_on
    FROM line GROUP BY cellar_id
), totals AS (
    INSERT INTO cellars_valuation (cellar_id, day, currency, usd_rate, value, bottles, without_value, valued_at)
    SELECT cellar_id, %(day)s, currency, per_usd, value, bottles, without_value, %(now)s FROM valued
    ON CONFLICT (cellar_id, day) DO NOTHING
), lines AS (
    INSERT INTO cellars_valuationlines (cellar_id, day, bottle_ids, quantities, unit_values, sources, seen_on)
    SELECT cellar_id, %(day)s, bottle_ids, quantities, unit_values, sources, seen_on FROM valued WHERE bottles > 0
    ON CONFLICT (cellar_id, day) DO NOTHING
)
SELECT count(*), coalesce(sum(bottles), 0), coalesce(sum(without_value), 0) FROM valued
"""
# Memory to bring a chunk's bottles together without the disk. And never a scan of all bottles for some of them, though
# it looks cheaper while they are few: the cost of a night would grow with their square.
FOR_A_CHUNK = "SET LOCAL work_mem = '32MB'; SET LOCAL enable_seqscan = off"
SOURCES = {
    "own": Source.OWN.value,
    "offer": Source.OFFER.value,
    "last_offer": Source.LAST_OFFER.value,
    "paid": Source.PAID.value,
    "none": Source.NONE.value,
}


def _value_chunk(day: date, now: datetime) -> tuple[int, Valued]:
    """Value the next cellars: how many were looked at (0: there are no more), and what was done."""
    with connection.cursor() as cursor:
        cursor.execute(NEXT_CELLARS, {"day": day, "chunk": settings.VALUATION_CHUNK})
        found = cursor.fetchone()
        if found is None:
            return 0, Valued()
        after, last, looked_at = found
        cursor.execute(FOR_A_CHUNK)
        cursor.execute(VALUE_CELLARS, {"day": day, "after": after, "last": last, "now": now, **SOURCES})
        cellars, bottles, without_value = cursor.fetchone()
    return looked_at, Valued(cellars, int(bottles), int(without_value))


def _forget(before: date) -> None:
    """Lines and prices of nights that no page explains any more."""
    with connection.cursor() as cursor:
        for table in ("cellars_valuationlines", "cellars_nightprice"):
            cursor.execute(f"DELETE FROM {table} WHERE day < %s", [before])  # noqa: S608  # two names of ours
