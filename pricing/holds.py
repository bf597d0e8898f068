"""Held prices: a person says whether a price that jumped is true. Called by the admin.

Guarantee: a held price is released or rejected once; releasing records it like any other observation, but unheld.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from pricing.models import HeldPrice
from pricing.rules import Observation
from pricing.services import Outcome, record_observations


def release(*, held_id: int, by: str, now: datetime) -> Outcome | None:
    """Record a held price as true. None when somebody else has settled it. Raises UnknownWineError."""
    with transaction.atomic():
        held = HeldPrice.objects.select_for_update(of=("self",)).select_related("merchant").filter(pk=held_id).first()
        if held is None:
            return None
        held.delete()
        observation = Observation(held.wine_id, held.price_usd, held.occurred_at)
        [outcome] = record_observations(
            merchant=held.merchant, observations=[observation], attributes={"released_by": by}, now=now, trusted=True
        )
        return outcome


def reject(*, held_id: int) -> bool:
    """Drop a held price as wrong. False when somebody else has settled it."""
    deleted, _ = HeldPrice.objects.filter(pk=held_id).delete()
    return deleted == 1
