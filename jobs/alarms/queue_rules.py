"""When the queue, or the database under it, is in trouble: the gauges' facts turned into conditions. Pure.

Every threshold of age is a share of the one figure that is promised. Ages and trends are judged for each partition: one
that is late is said, however idle the others are. No judge looks at a depth alone, which says nothing without a rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.alarms.rules import Condition, Severity
from jobs.gauges.figures import GROWING, Partition, Pause, Subscription
from jobs.words import span, utc

QUEUE_ALARMS = (
    *("queue-behind", "queue-late", "queue-growing", "partition-hot", "message-cycling"),
    *("arrivals-stopped", "subscription-suspended", "type-unknown", "type-unsubscribed"),
)
SERVER_ALARMS = ("horizon-held", "dead-rows", "notify-queue-filling", "connections-short")
# A trend must hold for a while: a batch of a merchant's file is none.
TREND_ALARMS = ("queue-growing", "partition-hot", "message-cycling", "connections-short")
# So many slots of five minutes in a day with messages make a habit that can be broken.
HABIT = 24


@dataclass(frozen=True)
class QueueLimits:
    """Every threshold of these judges, from winecellar/settings.py."""

    warn_share: float
    page_share: float
    silent_after: timedelta
    silent_factor: float
    suspended_after: timedelta
    horizon_after: timedelta
    dead_rows: int
    notify_queue: float
    connections: float


def judge_queue(
    subscriptions: Iterable[Subscription], now: datetime, limits: QueueLimits, *, worker_lives: bool
) -> Iterator[Condition]:
    for subscription in subscriptions:
        if subscription.paused_at and now - subscription.paused_at > limits.suspended_after:
            yield Condition(
                "subscription-suspended",
                subscription.name,
                Severity.WARN,
                f"Paused since {utc(subscription.paused_at)}; {subscription.depth:,} wait, and nothing hands them out.",
            )
        yield from _judge_ages(subscription, limits, worker_lives=worker_lives)
        yield from _judge_trends(subscription, limits)
        if subscription.unknown_types:
            yield Condition(
                "type-unknown",
                subscription.name,
                Severity.WARN,
                f"Its workers do not know {', '.join(sorted(subscription.unknown_types))}: newer code publishes it."
                " It is put back until they do.",
            )


def _judge_ages(subscription: Subscription, limits: QueueLimits, *, worker_lives: bool) -> Iterator[Condition]:
    worst = subscription.worst
    warn_at = subscription.promise * limits.warn_share
    if worst.waiting < warn_at:
        return
    where = _where(subscription, worst)
    nobody = "" if worker_lives else " No worker has shown a sign of life."
    paused = f" It is paused since {utc(subscription.paused_at)}." if subscription.paused_at else ""
    promised = f"{span(subscription.promise)} is promised"
    summary = (
        f"{where} has waited for {span(worst.waiting)}; {promised}. {subscription.depth:,} wait in all.{paused}{nobody}"
    )
    yield Condition("queue-behind", subscription.name, Severity.WARN, summary)
    if worst.waiting >= subscription.promise * limits.page_share:
        yield Condition("queue-late", subscription.name, Severity.PAGE, summary)
    for partition in subscription.partitions:
        if partition.waiting < warn_at or partition.is_cycling:
            continue
        if subscription.is_hot(partition):
            yield Condition(
                "partition-hot",
                f"{subscription.name}, partition {partition.part}",
                Severity.WARN,
                f"It has {partition.depth:,} of the {subscription.depth:,} that wait, the oldest for"
                f" {span(partition.waiting)}, while the others keep up.",
            )


def _where(subscription: Subscription, worst: Partition) -> str:
    return f"The oldest in partition {worst.part}" if len(subscription.partitions) > 1 else "The oldest"


def _judge_trends(subscription: Subscription, limits: QueueLimits) -> Iterator[Condition]:
    growing = [
        p for p in subscription.partitions if p.drains_in > subscription.promise and p.depth > max(p.completing, 10)
    ]
    if growing and not subscription.paused_at:
        worst = max(growing, key=lambda p: (p.drains_in, p.depth))
        drains = "never at this rate" if worst.drains_in == GROWING else f"in {span(worst.drains_in)}"
        yield Condition(
            "queue-growing",
            subscription.name,
            Severity.WARN,
            f"Partition {worst.part} drains {drains}: {worst.depth:,} wait, {worst.arriving:,.0f} arrive and"
            f" {worst.completing:,.0f} are done a minute.",
        )
    for partition in subscription.partitions:
        if partition.is_cycling and partition.waiting >= subscription.promise * limits.warn_share:
            yield Condition(
                "message-cycling",
                f"{subscription.name}, partition {partition.part}",
                Severity.WARN,
                f"{partition.depth:,} of it {'comes' if partition.depth == 1 else 'come'} back again and again, the"
                f" oldest for {span(partition.age)}, while nothing waits for its first time.",
            )


def judge_arrivals(
    pauses: Mapping[str, Pause | None], now: datetime, limits: QueueLimits, *, slot: timedelta
) -> Iterator[Condition]:
    """A queue that is empty looks well on every other gauge. `slot`: how exactly the last arrival is known."""
    for name, pause in pauses.items():
        if pause is None or pause.slots < HABIT:
            continue
        silent = now - pause.last - slot
        if silent > max(limits.silent_after, limits.silent_factor * pause.longest):
            yield Condition(
                "arrivals-stopped",
                name,
                Severity.WARN,
                f"Nothing has been published to it for {span(silent)}; the longest pause of the day before was"
                f" {span(pause.longest)}.",
            )


def judge_unsubscribed(types: Mapping[str, int]) -> Iterator[Condition]:
    for type_, count in types.items():
        yield Condition(
            "type-unsubscribed",
            type_,
            Severity.WARN,
            f"{count:,} messages of it came in the last minutes, and no subscription receives them. The log has them.",
        )


# --- The database -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServerFacts:
    """`held_by`: who holds the oldest snapshot, in words, and for how long. `tables`: live and dead rows by name."""

    held: timedelta | None
    held_by: str
    tables: Mapping[str, tuple[int, int]]
    notify_queue: float
    connections: int
    max_connections: int


def judge_server(facts: ServerFacts, limits: QueueLimits) -> Iterator[Condition]:
    if facts.held is not None and facts.held > limits.horizon_after:
        summary = f"For {span(facts.held)} VACUUM has removed nothing that died since. It is held by {facts.held_by}"
        yield Condition("horizon-held", "database", Severity.WARN, summary)
    for table, (live, dead) in facts.tables.items():
        if dead > max(limits.dead_rows, live):
            yield Condition(
                "dead-rows", table, Severity.WARN, f"{dead:,} rows are dead, {live:,} live: VACUUM is behind."
            )
    if facts.notify_queue > limits.notify_queue:
        summary = f"{facts.notify_queue:.0%} full: a session that listens has not read for long."
        yield Condition("notify-queue-filling", "database", Severity.WARN, summary)
    if facts.connections > limits.connections * facts.max_connections:
        summary = f"{facts.connections} of {facts.max_connections} connections are taken."
        yield Condition("connections-short", "database", Severity.WARN, summary)
