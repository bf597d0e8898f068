"""The gauges as Prometheus reads them. Everything is read from the database, so every web process says the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from django.conf import settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from jobs.gauges.figures import GROWING, Partition, Subscription
from jobs.gauges.reading import LETTER_AGES, Reading

QUANTILES = (0.5, 0.99)
Samples = Iterable[tuple[Sequence[str], float | None]]


def text(reading: Reading) -> bytes:
    """The exposition format; see CONTENT_TYPE_LATEST of prometheus_client."""
    registry = CollectorRegistry()
    registry.register(_Once(reading))
    return generate_latest(registry)


class _Once(Collector):
    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return []  # so that registering does not read everything a first time

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for families in (_partitions, _subscriptions, _processes, _jobs, _database, _rest):
            yield from families(self._reading)


def _gauge(name: str, told: str, samples: Samples, labels: Sequence[str] = ()) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"jobs_{name}", told, labels=labels)
    for values, value in samples:
        if value is not None:
            family.add_metric(list(values), value)
    return family


def _seconds(time: timedelta) -> float:
    return math.inf if time == GROWING else time.total_seconds()


PARTITION: dict[str, tuple[str, Callable[[Partition], float]]] = {
    "depth": ("Deliveries that are not acked.", lambda p: p.depth),
    "in_flight": ("Deliveries that are leased to a worker.", lambda p: p.counted.in_flight),
    "suspect": ("Deliveries whose worker fell silent.", lambda p: p.counted.suspect),
    "retrying": ("Deliveries that wait for another try.", lambda p: p.counted.retrying),
    "delayed": ("Deliveries that are not to be handled yet.", lambda p: p.counted.delayed),
    "most_receives": ("How often the one that was handed out most was.", lambda p: p.counted.most_receives),
    "oldest_age_seconds": ("Age of the oldest unacked message, from publication.", lambda p: _seconds(p.age)),
    "waiting_seconds": ("How long the longest waiting could have been handled.", lambda p: _seconds(p.waiting)),
    "lag_messages": ("Deliveries that were never handed out and could be.", lambda p: p.counted.unreceived),
    "lag_seconds": ("Age of the oldest of those.", lambda p: _seconds(p.lag)),
    "arrivals_per_minute": ("Published to it, over the last minutes.", lambda p: p.arriving),
    "completions_per_minute": ("Acked or buried, over the last minutes.", lambda p: p.completing),
    "drain_seconds": ("Until it is empty at these rates; +Inf: never.", lambda p: _seconds(p.drains_in)),
}  # fmt: skip


def _partitions(reading: Reading) -> Iterator[GaugeMetricFamily]:
    every: list[tuple[tuple[str, str], Partition]] = [
        ((s.name, str(p.part)), p) for s in reading.subscriptions for p in s.partitions
    ]
    for name, (told, value) in PARTITION.items():
        yield _gauge(
            f"partition_{name}", told, ((labels, value(p)) for labels, p in every), ("subscription", "partition")
        )


def _subscriptions(reading: Reading) -> Iterator[GaugeMetricFamily]:
    every, one = reading.subscriptions, ("subscription",)

    def by_name(of: str) -> Samples:
        return (((s.name, name), count) for s in every for name, count in _mapping(s, of).items())

    yield _gauge("subscription_promise_seconds", "By when an effect should have come.",
                 (((s.name,), s.promise.total_seconds()) for s in every), one)  # fmt: skip
    yield _gauge("subscription_receives_per_ack", "1: everything succeeds at once.",
                 (((s.name,), s.receives_per_ack) for s in every), one)  # fmt: skip
    yield _gauge("subscription_applied_seconds", "From publication to effect, over the last minutes.",
                 (((s.name, f"{q:g}"), s.window(q)) for s in every for q in QUANTILES),
                 ("subscription", "quantile"))  # fmt: skip
    yield _gauge("subscription_paused_seconds", "Since when it is paused; 0: it is not.",
                 (((s.name,), (reading.now - s.paused_at).total_seconds() if s.paused_at else 0) for s in every),
                 one)  # fmt: skip
    yield _gauge("subscription_since_arrival_seconds", "Since when nothing was published to it.",
                 (((s.name,), (reading.now - s.pause.last).total_seconds()) for s in every if s.pause),
                 one)  # fmt: skip
    yield _gauge("subscription_errors", "Failures over the last minutes.", by_name("errors"),
                 ("subscription", "error_class"))  # fmt: skip
    yield _gauge("subscription_unknown_types", "Put back, since its workers do not know the type.",
                 by_name("unknown_types"), ("subscription", "type"))  # fmt: skip
    yield _gauge("dead_letters", "Dead letters that wait for a decision, by age: up to this.",
                 (((s.name, age), count) for s in every for age, count in zip(LETTER_AGES, s.dead, strict=False)),
                 ("subscription", "age"))  # fmt: skip


def _mapping(subscription: Subscription, of: str) -> Mapping[str, int]:
    counts: Mapping[str, int] = getattr(subscription, of)
    return counts


def _processes(reading: Reading) -> Iterator[GaugeMetricFamily]:
    yield _gauge("process_last_sign_seconds", "Since its last sign of life.",
                 (((p.kind, p.owner), (reading.now - p.beat_at).total_seconds()) for p in reading.processes),
                 ("kind", "owner"))  # fmt: skip
    workers = [p for p in reading.processes if p.kind == "worker"]
    yield _gauge("worker_memory_bytes", "Resident memory.",
                 (((w.owner,), w.facts.get("memory_bytes")) for w in workers), ("owner",))  # fmt: skip
    yield _gauge("worker_quiet_seconds", "Since it last finished anything, when it last told.",
                 (((w.owner,), w.facts.get("quiet_seconds")) for w in workers), ("owner",))  # fmt: skip
    batches = [(w.owner, batch) for w in workers for batch in w.facts.get("batches", ())]
    yield _gauge("worker_batch_messages", "Under way.",
                 (((owner, b["subscription"], str(b.get("part", ""))), b["messages"]) for owner, b in batches),
                 ("owner", "subscription", "partition"))  # fmt: skip
    yield _gauge("worker_batch_seconds", "For how long one batch's transaction is under way.",
                 (((owner, b["subscription"], str(b.get("part", ""))), b.get("seconds")) for owner, b in batches),
                 ("owner", "subscription", "partition"))  # fmt: skip


def _jobs(reading: Reading) -> Iterator[GaugeMetricFamily]:
    jobs, now = reading.jobs, reading.now
    yield _gauge("schedule_since_success_seconds", "Since it last completed; since it is known, if it never has.",
                 (((j.job,), (now - (j.ran_at or j.known_since)).total_seconds()) for j in jobs), ("job",))  # fmt: skip
    yield _gauge("schedule_limit_seconds", "For so long it need not have completed.",
                 (((j.job,), j.limit.total_seconds()) for j in jobs), ("job",))  # fmt: skip
    yield _gauge("schedule_running_seconds", "For how long it runs; 0: it does not.",
                 (((j.job,), (now - j.running_since).total_seconds() if j.running_since else 0) for j in jobs),
                 ("job",))  # fmt: skip


def _database(reading: Reading) -> Iterator[GaugeMetricFamily]:
    server = reading.server
    horizon = server.horizon
    held = horizon.held.total_seconds() if horizon and horizon.held else 0
    yield _gauge("database_horizon_seconds", "For how long the oldest snapshot is held.",
                 [((horizon.kind if horizon else "", str(horizon.pid or "") if horizon else ""), held)],
                 ("kind", "pid"))  # fmt: skip
    yield _gauge("database_horizon_transactions", "How many transactions ago it was taken.",
                 [((), horizon.xids if horizon else 0)])  # fmt: skip
    yield _gauge("database_dead_rows", "Rows that VACUUM has not removed.",
                 (((t.name,), t.dead) for t in server.tables), ("table",))  # fmt: skip
    yield _gauge("database_live_rows", "Rows, as the server estimates them.",
                 (((t.name,), t.live) for t in server.tables), ("table",))  # fmt: skip
    yield _gauge("database_notify_queue_share", "How full the notification queue is: 0 to 1.",
                 [((), server.notify_queue)])  # fmt: skip
    yield _gauge("database_connections", "Connections of clients.", [((), server.connections)])
    yield _gauge("database_max_connections", "How many there may be.", [((), server.max_connections)])
    yield _gauge("database_idle_in_transaction", "Sessions that idle in a transaction.",
                 [((), server.idle_in_transaction)])  # fmt: skip
    yield _gauge("database_replica_lag_seconds", "How far a replica is behind.",
                 (((r.name,), r.lag_seconds) for r in server.replicas), ("replica",))  # fmt: skip
    yield _gauge("database_replica_lag_bytes", "The same, in bytes of the log.",
                 (((r.name,), r.lag_bytes) for r in server.replicas), ("replica",))  # fmt: skip


def _rest(reading: Reading) -> Iterator[GaugeMetricFamily]:
    yield _gauge("unsubscribed_messages", "Published over the last minutes, and no subscription receives them.",
                 (((name,), count) for name, count in reading.unsubscribed.items()), ("type",))  # fmt: skip
    yield _gauge("breaker_open_seconds", "For how long another side is away.",
                 (((b.name,), (reading.now - b.opened_at).total_seconds()) for b in reading.away if b.opened_at),
                 ("name",))  # fmt: skip
    yield _gauge("incidents_open", "Incidents that are not over.",
                 (((severity,), count) for severity, count in reading.incidents.items()), ("severity",))  # fmt: skip
    yield _gauge("census_age_seconds", "How old the counts of the queue are.",
                 [((), max((reading.now - reading.counted_at).total_seconds(), 0))])  # fmt: skip
    yield _gauge("census_sampled", "1: a watchman counts; 0: each reading counts by itself.",
                 [((), int(reading.is_sampled))])  # fmt: skip
    yield _gauge("promise_seconds", "The figure on the page.", [((), settings.ALERT_PROMISE.total_seconds())])
