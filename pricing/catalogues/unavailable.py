"""Offers that a catalogue no longer has. To be replaced by pricing.availability, which tells of it by an event.

Guarantee: an offer that the merchant has confirmed since stays. Called by the refresh, which holds the wines' locks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pricing.models import Merchant, Offer


def withdraw(
    *,
    merchant: Merchant,
    wine_ids: Sequence[str],
    at: datetime,
    why: str,
    attributes: Mapping[str, str],
    now: datetime,
) -> list[str]:
    """End the merchant's offers of these wines as of `at`; returns the wines of which that was news."""
    gone = Offer.objects.filter(merchant=merchant, wine__in=wine_ids, seen_at__lte=at)
    ended = sorted(gone.values_list("wine_id", flat=True))
    gone.delete()
    return ended
