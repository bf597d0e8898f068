"""What an operator does to a subscription: pause, resume, limit, repartition, replay. Shared by command and admin."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog
from django.db.models.functions import Now

from jobs import catalog
from jobs.models import Subscription

log = structlog.get_logger(__name__)
MOST_PARTITIONS = 1_024
REPLAY_BATCH = 5_000


def pause(*, name: str) -> None:
    """Stop handing out its deliveries, within one poll. What is in flight is finished; nothing is lost."""
    Subscription.objects.filter(name=name, paused_at__isnull=True).update(paused_at=Now())
    log.info("subscription.paused", subscription=name)


def resume(*, name: str) -> None:
    Subscription.objects.filter(name=name).update(paused_at=None)
    log.info("subscription.resumed", subscription=name)


def limit(*, name: str, **limits: float | None) -> None:
    """Set `batch`, `concurrency` or `rate_per_second`; None leaves it to the route. Raises ValueError in words."""
    for field, value in limits.items():
        if value is not None and value <= 0:
            raise ValueError(f"{field}: must be above 0, not {value}. To stop the subscription, pause it.")
    Subscription.objects.filter(name=name).update(**limits)
    log.info("subscription.limited", subscription=name, **limits)


def repartition(*, name: str, partitions: int) -> int:
    """Hash its keys into another number of partitions, on the live system, keeping every key's order.

    Returns how many waiting deliveries moved. Raises ValueError in words.
    """
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise ValueError(f"partitions: must be between 1 and {MOST_PARTITIONS}, not {partitions}")
    moved = catalog.repartition(Subscription.objects.get(name=name).pk, partitions)
    log.info("subscription.repartitioned", subscription=name, partitions=partitions, moved=moved)
    return moved


def replay(*, name: str, since: datetime, progress: Callable[[int], None] = lambda queued: None) -> int:
    """Queue for a subscription what the log holds from `since` on and it has not applied, in order; how many.

    It is paused meanwhile, and afterwards what was published during the replay stands behind what was replayed. Raises
    ValueError if it has a backlog: the same message would be queued twice.
    """
    subscription = Subscription.objects.get(name=name)
    was_paused = subscription.paused_at is not None
    pause(name=name)
    if waiting := catalog.waiting(subscription.pk):
        if not was_paused:
            resume(name=name)
        raise ValueError(f"{name} has {waiting} deliveries waiting; let it catch up first, then replay.")
    until, after, queued = catalog.log_end(), 0, 0
    while after < until:
        count, after = catalog.replay_some(subscription.pk, since=since, after=after, until=until, limit=REPLAY_BATCH)
        queued += count
        progress(queued)
    catalog.move_behind(subscription.pk)
    if not was_paused:
        resume(name=name)
    log.info("subscription.replayed", subscription=name, since=since.isoformat(), queued=queued)
    return queued
