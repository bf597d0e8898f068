"""When purchases do not move: a judge for jobs/alarms. Reads; the thresholds are in settings.py."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Min
from django.urls import reverse

from jobs.alarms.judges import Judge
from jobs.alarms.rules import Condition, Severity
from jobs.words import span
from winecellar.purchases.models import Purchase
from winecellar.purchases.rules import ENDED, NEEDS_PERSON

ALARMS = ("purchase-needs-person", "purchase-slow")


def look(now: datetime) -> Iterator[Condition]:
    """2 queries, over what is under way."""
    under_way = Purchase.objects.order_by().exclude(state__in=[state.value for state in sorted(ENDED)])
    people = [state.value for state in sorted(NEEDS_PERSON)]
    waiting = under_way.filter(state__in=people).aggregate(count=Count("pk"), oldest=Min("changed_at"))
    if waiting["count"]:
        summary = f"{_purchases(waiting['count'])} for a person, the first for {span(now - waiting['oldest'])}."
        yield Condition("purchase-needs-person", "purchases", Severity.PAGE, summary)
    slow = under_way.exclude(state__in=people).filter(changed_at__lt=now - settings.PURCHASE_SLOW_AFTER)
    for row in slow.values("state").annotate(count=Count("pk"), oldest=Min("changed_at")):
        summary = f"{_purchases(row['count'])} in state {row['state']}, the first for {span(now - row['oldest'])}."
        yield Condition("purchase-slow", row["state"], Severity.WARN, summary)


def _purchases(count: int) -> str:
    return "1 purchase waits" if count == 1 else f"{count} purchases wait"


def page(subject: str) -> str:
    return f"{reverse('admin:purchases_purchase_changelist')}?standing=open"


JUDGE = Judge(ALARMS, look, runbook="purchases", page=page)
