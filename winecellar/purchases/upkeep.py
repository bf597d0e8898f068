"""The minute's job: reservations that ran out, and what nobody has been able to find out for too long.

Guarantee: each purchase is looked at under its lock, so what was charged a moment before is sold and not released; a
chunk holds the run's lock until it commits. Passes by what others are settling: the next minute comes.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from jobs.schedule.run import Run
from winecellar.purchases import books
from winecellar.purchases.books import Outcome
from winecellar.purchases.models import ProviderReport, Purchase
from winecellar.purchases.rules import RESERVES, Event, State

CHUNK = 200
REPORTS_CHUNK = 10_000


def run(run: Run) -> None:
    for event, waiting in due(timezone.now()).items():
        while True:
            with run.fenced():
                count = settle(event, waiting, now=timezone.now())
            if count < CHUNK:
                break
    with run.fenced():
        old = ProviderReport.objects.filter(received_at__lt=timezone.now() - settings.PAYMENT_REPORT_RETENTION)
        ProviderReport.objects.filter(pk__in=old.values("pk")[:REPORTS_CHUNK]).delete()


def due(now: datetime) -> dict[Event, Q]:
    """What is to be settled by time, and which purchases it concerns."""
    waiting = [State.LAPSED.value, State.CALLING_OFF.value, State.REFUNDING.value]
    return {
        Event.TIME_UP: Q(state__in=[state.value for state in RESERVES], reserved_until__lte=now),
        Event.PATIENCE_OVER: Q(state__in=waiting, changed_at__lte=now - settings.PAYMENT_PATIENCE),
    }


def settle(event: Event, waiting: Q, *, now: datetime) -> int:
    """One chunk, in the caller's transaction; how many it was."""
    found = books.locked(Purchase.objects.filter(waiting), most=CHUNK, skip=True)
    books.apply([Outcome(purchase.pk, event) for purchase in found], now=now)
    return len(found)
