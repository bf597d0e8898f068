"""Held prices: a person says whether one is true, and what lacked a rate is recorded when the rate has come.

Guarantee: a held price is released or rejected once; releasing records it like any other observation. Locks the
wines before the held prices, as feed intake does. Called by the admin and by `manage.py load_rates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import groupby

from django.db import transaction

from pricing import rates
from pricing.exchange import Rate
from pricing.models import HeldPrice, Merchant, Wine
from pricing.rules import Observation
from pricing.services import Outcome, UnknownWineError, record_observations

AT_ONCE = 500


def release(*, held_id: int, by: str, now: datetime) -> Outcome | None:
    """Record a held price as true. None when somebody else has settled it. Raises UnknownWineError.

    Without a rate of its day the last one is used, however old; if there is none at all, the price is held again.
    """
    with transaction.atomic():
        waiting = HeldPrice.objects.select_related("merchant").filter(pk=held_id).first()
        if waiting is None or not _take([waiting]):
            return None
        outcomes = record_observations(
            merchant=waiting.merchant,
            observations=list(_observations(waiting)),
            attributes={**waiting.attributes, "released_by": by},
            now=now,
            trusted=True,
        )
        return outcomes[0]


def release_convertible(*, now: datetime) -> int:
    """Record the prices that waited for a rate which is known by now, in the order in which they came to be; how many.

    A price far from the last one is then held for that. What has no rate yet, or a wine no longer listed, waits.
    """
    waiting = HeldPrice.objects.filter(cause=HeldPrice.Cause.NO_RATE, wine__retired_at__isnull=True)
    rows = list(waiting.select_related("merchant").order_by("merchant_id", "occurred_at", "id"))
    found = rates.find({_wanted(held) for held in rows})
    ready = [held for held in rows if _is_price(held, found.get(_wanted(held)))]
    released = 0
    for merchant, of_merchant in groupby(ready, key=lambda held: held.merchant):
        for some in _chunks(list(of_merchant)):
            released += _release_some(merchant, some, now)
    return released


def reject(*, held_id: int) -> bool:
    """Drop a held price as wrong. False when somebody else has settled it."""
    deleted, _ = HeldPrice.objects.filter(pk=held_id).delete()
    return deleted == 1


def _release_some(merchant: Merchant, held: Sequence[HeldPrice], now: datetime) -> int:
    try:
        with transaction.atomic():
            taken = _take(held)
            observations = [(seen, each.attributes) for each in taken for seen in _observations(each)]
            record_observations(
                merchant=merchant,
                observations=[seen for seen, _ in observations],
                attributes={},
                own_attributes=[attributes for _, attributes in observations],
                now=now,
            )
    except UnknownWineError:  # retired since we looked: all of them wait, and the others go next time
        return 0
    return len(taken)


def _is_price(held: HeldPrice, rate: Rate | None) -> bool:
    return rate is not None and held.native_price is not None and rate.to_usd(held.native_price) is not None


def _take(held: Sequence[HeldPrice]) -> list[HeldPrice]:
    """Take them out of those that wait; those that somebody else has settled are left out."""
    wines = Wine.objects.select_for_update(no_key=True).filter(pk__in={each.wine_id for each in held}).order_by("id")
    list(wines.values_list("pk"))
    ids = [each.pk for each in held]
    fresh = {row.pk: row for row in HeldPrice.objects.select_for_update().filter(pk__in=ids).order_by("pk")}
    HeldPrice.objects.filter(pk__in=fresh).delete()
    return [fresh[id_] for id_ in ids if id_ in fresh]


def _observations(held: HeldPrice) -> Iterator[Observation]:
    """The price as it came, and once more for the last time it was said again while it was held."""
    times = [held.occurred_at, *([held.seen_at] if held.seen_at else [])]
    for at in times:
        yield Observation(held.wine_id, held.price_usd, at, held.native_price, held.native_currency, held.tax)


def _wanted(held: HeldPrice) -> tuple[str, date]:
    return held.native_currency, held.occurred_at.astimezone(UTC).date()


def _chunks(rows: list[HeldPrice]) -> Iterator[list[HeldPrice]]:
    for start in range(0, len(rows), AT_ONCE):
        yield rows[start : start + AT_ONCE]
