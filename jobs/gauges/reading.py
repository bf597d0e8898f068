"""All gauges, read once: for /metrics, the operators' page, `manage.py status` and the alarms. Changes nothing.

Guarantee: reads tables that are small whatever the backlog is, so that it costs some milliseconds with a million
messages waiting. What is counted is as old as `counted_at` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from jobs.dead_letters import store as dead_letters
from jobs.gauges import census, server, store
from jobs.gauges.figures import Counted, Flows, Partition, Subscription
from jobs.gauges.tally import APPLIED, ERROR, UNKNOWN
from jobs.models import Breaker, Incident, Process
from jobs.models import Subscription as Declared
from jobs.schedule import store as schedule
from jobs.schedule.declared import load_schedule
from jobs.subscriptions import load_routes

DAY = timedelta(days=1)
UNSUBSCRIBED = "unsubscribed"
# Ages of dead letters that nobody has decided about: below the warning, below the page, below a day, below the five
# business days of the runbook, and older.
LETTER_AGES = ("5min", "15min", "1d", "7d", "older")


@dataclass(frozen=True)
class Heartbeat:
    """A job: when it last completed, how long it may be until the next time, since when it runs if it does."""

    job: str
    ran_at: datetime | None
    known_since: datetime
    limit: timedelta
    running_since: datetime | None
    paused_at: datetime | None


@dataclass(frozen=True)
class Alive:
    """A process that has shown a sign of life lately. `facts` are a worker's."""

    kind: str
    owner: str
    started_at: datetime
    beat_at: datetime
    facts: dict[str, Any]


@dataclass(frozen=True)
class Reading:
    now: datetime
    counted_at: datetime
    is_sampled: bool  # whether a watchman counts; else it was counted for this reading
    subscriptions: list[Subscription]
    unsubscribed: dict[str, int]  # types that nobody receives, over the last minutes
    processes: list[Alive]
    jobs: list[Heartbeat]
    away: list[Breaker]
    incidents: dict[str, int]  # that are open, by severity
    server: server.Server

    def subscription(self, name: str) -> Subscription:
        (found,) = (s for s in self.subscriptions if s.name == name)
        return found


def read(now: datetime, *, as_counted: bool = False) -> Reading:
    """Everything, at the database's time `now`, or `as_counted`: when the queue was last counted."""
    counted_at, counted, is_sampled = census.partitions()
    now = counted_at if as_counted else now
    return Reading(
        now=now,
        counted_at=counted_at,
        is_sampled=is_sampled,
        subscriptions=_subscriptions(counted, now),
        unsubscribed=store.occurrences({UNSUBSCRIBED: _rates_since(now)}).get((UNSUBSCRIBED, 0), {}),
        processes=[
            Alive(p.kind, p.owner, p.started_at, p.beat_at, p.facts)
            for p in Process.objects.filter(beat_at__gte=now - settings.PROCESS_SILENT_AFTER).order_by("kind", "owner")
        ],
        jobs=_jobs(),
        away=list(Breaker.objects.filter(opened_at__isnull=False)),
        incidents=_incidents(),
        server=server.look(),
    )


def subscriptions(now: datetime) -> list[Subscription]:
    """The subscriptions' gauges alone, counted now: for who has just changed one."""
    return _subscriptions(census.count()[1], now)


def _subscriptions(counted: Sequence[Counted], now: datetime) -> list[Subscription]:
    since = _rates_since(now)
    minutes = (now - since) / timedelta(minutes=1)
    flows = store.flows(since)
    occurred = store.occurrences(
        {APPLIED: now - settings.GAUGE_WINDOW_OVER, ERROR: now - settings.GAUGE_WINDOW_OVER, UNKNOWN: since}
    )
    pauses, dead = store.pauses(now - DAY), dead_letters.ages(now)
    by_subscription: dict[int, list[Partition]] = {}
    for row in counted:
        partition = Partition(row, flows.get((row.subscription, row.part), Flows()), minutes, now)
        by_subscription.setdefault(row.subscription, []).append(partition)
    return [
        Subscription(
            name=s.name,
            ordered=s.ordered,
            promise=_promise(s.name),
            paused_at=s.paused_at,
            partitions=by_subscription[s.pk],
            applied={int(name): count for name, count in occurred.get((APPLIED, s.pk), {}).items()},
            errors=occurred.get((ERROR, s.pk), {}),
            unknown_types=occurred.get((UNKNOWN, s.pk), {}),
            pause=pauses.get(s.pk),
            dead=dead.get(s.name, ()),
        )
        for s in Declared.objects.order_by("name")
        if s.pk in by_subscription
    ]


def _rates_since(now: datetime) -> datetime:
    """Rates are of whole minutes and the one that runs."""
    start: datetime = now - settings.GAUGE_RATE_OVER
    return start.replace(second=0, microsecond=0)


def _promise(name: str) -> timedelta:
    route = load_routes().get(name)
    return (route and route.promise) or settings.ALERT_PROMISE


def _incidents() -> dict[str, int]:
    found = Incident.objects.filter(closed_at=None, opened_at__isnull=False).order_by()
    return {**dict.fromkeys(Incident.Severity.values, 0), **Counter(found.values_list("severity", flat=True))}


def _jobs() -> list[Heartbeat]:
    declared = load_schedule()
    return [
        Heartbeat(job, ran_at, known_since, declared[job].heartbeat, running_since, paused_at)
        for job, known_since, paused_at, ran_at, running_since in schedule.heartbeats()
        if job in declared
    ]
