"""Reads about somebody's cellar, for the pages and the export. Changes nothing; each says how many queries it makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

from django.conf import settings

from pricing.chart import Chart, draw
from pricing.models import Offer, Wine
from pricing.timeline import Step
from winecellar.cellars.files.lots import Facts, Lot
from winecellar.cellars.holdings import Held
from winecellar.cellars.imports import STORED
from winecellar.cellars.models import EXACT_DECIMALS, Bottle, Cellar, Valuation, ValuationLines
from winecellar.cellars.rates import rates_on
from winecellar.cellars.rules import Basis, Change, Line, Money, Offered, Source, Worth, explain, worth

EXACT = Decimal(1).scaleb(-EXACT_DECIMALS)
NO_LINE = (None, None, None)


@dataclass(frozen=True, slots=True)
class Mover:
    """A bottle that moved the cellar's value, and by how much."""

    bottle_id: int
    name: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Since:
    """What changed from an earlier night to the last one, and why. `change` is None where that cannot be said."""

    before: Valuation
    difference: Decimal
    change: Change | None


def find_cellar(user_id: int) -> Cellar | None:
    """Somebody's cellar, if there is one yet: 1 query."""
    return Cellar.objects.filter(owner_id=user_id).first()


def last_nights(cellar: Cellar) -> list[Valuation]:
    """The last two valuations, the latest first: 1 query."""
    return list(Valuation.objects.filter(cellar=cellar).order_by("-day")[:2])


def holdings(cellar: Cellar, night: Valuation | None) -> list[Held]:
    """All bottles that are there, with their values of that night: 2 queries. New ones have no source yet."""
    lines = {line.bottle_id: line for line in lines_of(night)} if night else {}
    columns = Held._fields[: Held._fields.index("unit")]
    rows = Bottle.objects.filter(cellar=cellar, quantity__gt=0).order_by("id").values_list(*columns)
    held = []
    for row in rows:
        line = lines.get(row[0])
        held.append(Held._make((*row, *((line.unit, line.source, line.seen_on) if line else NO_LINE))))
    return held


def lines_of(night: Valuation) -> list[Line]:
    """A night's lines: 1 query; none where they are no longer kept."""
    kept = ValuationLines.objects.filter(cellar_id=night.cellar_id, day=night.day).first()
    if kept is None:
        return []
    columns = zip(kept.bottle_ids, kept.quantities, kept.unit_values, kept.sources, kept.seen_on, strict=True)
    return [Line(id_, quantity, unit, Source(source), seen_on) for id_, quantity, unit, source, seen_on in columns]


def change_since(now: Valuation, before: Valuation) -> Since:
    """Why two nights differ: 2 queries."""
    difference = now.value - before.value
    if now.currency != before.currency:
        return Since(before, difference, None)
    old, new = lines_of(before), lines_of(now)
    if (before.bottles and not old) or (now.bottles and not new):
        return Since(before, difference, None)
    return Since(before, difference, explain(old, new, rate_before=before.usd_rate, rate_after=now.usd_rate))


def movers(change: Change, cause: str, most: int) -> list[Mover]:
    """The bottles that a cause moved most: 1 query."""
    moved = change.largest(cause, most)
    names = {bottle.pk: bottle.full_name for bottle in Bottle.objects.filter(pk__in=[row.bottle_id for row in moved])}
    return [Mover(row.bottle_id, names[row.bottle_id], getattr(row, cause)) for row in moved if row.bottle_id in names]


def worth_over_time(cellar: Cellar, last: Valuation, period: timedelta) -> tuple[Chart | None, list[Valuation]]:
    """The chart of a cellar's value in its last currency, and its nights, newest first: 1 query."""
    nights = list(
        Valuation.objects.filter(cellar=cellar, currency=last.currency, day__gt=last.day - period).order_by("-day")
    )
    steps = [Step(_at(night.day), "", night.value) for night in reversed(nights)]
    drawable = len(steps) > 1 and any(step.price_usd for step in steps)
    return (draw(steps, since=steps[0].at, until=steps[-1].at) if drawable else None), nights


def find_bottle(cellar: Cellar, bottle_id: int) -> Bottle:
    """One bottle of this cellar: 1 query. Raises Bottle.DoesNotExist, for others' too."""
    return Bottle.objects.select_related("wine").get(pk=bottle_id, cellar=cellar)


def bottles_of_wine(*, user_id: int, wine_id: str) -> list[Bottle]:
    """What somebody holds of one wine, the most first: 1 query."""
    held = Bottle.objects.filter(cellar__owner_id=user_id, wine_id=wine_id, quantity__gt=0)
    return list(held.order_by("-quantity", "pk"))


def values_of(bottle: Bottle, cellar: Cellar) -> list[tuple[Valuation, Line]]:
    """What a bottle was worth on the nights whose lines are kept, newest first: 2 queries."""
    kept = ValuationLines.objects.filter(cellar=cellar, bottle_ids__contains=[bottle.pk]).order_by("-day")
    nights = {night.day: night for night in Valuation.objects.filter(cellar=cellar, day__in=[row.day for row in kept])}
    found = []
    for row in kept:
        at = row.bottle_ids.index(bottle.pk)
        line = Line(bottle.pk, row.quantities[at], row.unit_values[at], Source(row.sources[at]), row.seen_on[at])
        found.append((nights[row.day], line))
    return found


def worth_now(bottle: Bottle, cellar: Cellar, *, now: datetime) -> Worth:
    """What one bottle is worth by the offers of this moment, as the next night would say: at most 2 queries."""
    rates = rates_on(now.date())
    return worth(
        basis=Basis(cellar.currency, rates, cellar.scales_by_size),
        size_ml=bottle.size_ml,
        own=Money(bottle.own_value, bottle.own_currency) if bottle.own_value else None,
        offered=_offered(bottle.wine, rates, now) if bottle.wine else None,
        paid=Money(bottle.paid, bottle.paid_currency) if bottle.paid else None,
    )


def _offered(wine: Wine, rates: Mapping[str, Decimal], now: datetime) -> Offered | None:
    """The best standing offer, else the last one known, as the night freezes them."""
    asked = [(_in_dollars(offer, rates), offer) for offer in Offer.objects.filter(wine=wine)]
    fresh_since = now - settings.VALUATION_OFFER_FRESH
    standing = [usd for usd, offer in asked if not offer.withdrawn_at and offer.seen_at >= fresh_since]
    if standing:
        return Offered(min(standing), wine.size_ml)
    last = min(((offer.withdrawn_at or offer.seen_at, usd) for usd, offer in asked), key=_latest_first, default=None)
    return Offered(last[1], wine.size_ml, last[0].date()) if last else None


def _in_dollars(offer: Offer, rates: Mapping[str, Decimal]) -> Decimal:
    if offer.native_price and offer.native_currency in rates:
        return (offer.native_price / rates[offer.native_currency]).quantize(EXACT, ROUND_HALF_UP)
    return offer.price_usd


def _latest_first(seen: tuple[datetime, Decimal]) -> tuple[float, Decimal]:
    return -seen[0].timestamp(), seen[1]


def lots(cellar: Cellar) -> Iterator[Lot]:
    """All bottles that are there, as our own file has them: 1 query."""
    rows = Bottle.objects.filter(cellar=cellar, quantity__gt=0).order_by("id")
    for keys, quantity, wine_id, *facts in rows.values_list("keys", "quantity", "wine_id", *STORED).iterator():
        yield Lot(Facts(**dict(zip(STORED, facts, strict=True)), wine_id=wine_id or ""), quantity, keys)


def _at(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
