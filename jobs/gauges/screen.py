"""A reading for a terminal, and as plain data for scripts. Touches no database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jobs.alarms.rules import Condition
from jobs.gauges import words
from jobs.gauges.figures import GROWING, Subscription
from jobs.gauges.reading import Reading
from jobs.words import span

HEAD = ("subscription", "state", "wait", "drains in", "waiting", "flight", "retry", "in/min", "out/min", "p50", "p99")
LEFT = 2  # columns of words; the rest are figures


def lines(reading: Reading, conditions: Sequence[Condition], **shares: float) -> Iterator[str]:
    counted = "" if reading.is_sampled else "; no watchman counts"
    yield f"As of {reading.counted_at:%Y-%m-%d %H:%M:%S} UTC{counted}"
    yield ""
    table = [HEAD, *(_cells(s, **shares) for s in reading.subscriptions)]
    widths = [max(len(row[n]) for row in table) for n in range(len(HEAD))]
    for row, subscription in zip(table, [None, *reading.subscriptions], strict=True):
        yield "  ".join(
            cell.ljust(width) if n < LEFT else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for partition in subscription.partitions if subscription else ():
            if subscription and subscription.is_hot(partition):
                yield f"  partition {partition.part} is hot: {partition.depth:,} wait, {span(partition.waiting)}"
    yield ""
    server, workers = reading.server, [p for p in reading.processes if p.kind == "worker"]
    yield f"{len(workers)} workers; {server.connections} of {server.max_connections} connections"
    if server.horizon and server.horizon.held:
        yield f"oldest snapshot: {span(server.horizon.held)}, {server.horizon}"
    for breaker in reading.away:
        yield f"{breaker.name} is away: {breaker.reason}"
    for condition in conditions:
        yield f"{condition.severity.upper()}  {condition.alarm}, {condition.subject}: {condition.summary}"
    if not conditions:
        yield "Nothing needs a person."


def _cells(s: Subscription, **shares: float) -> tuple[str, ...]:
    return (
        s.name,
        words.state(s, **shares).word,
        span(s.worst.waiting) if s.depth else "–",
        words.drains(s.drains_in),
        f"{s.depth:,}",
        f"{s.total('in_flight'):,}",
        f"{s.total('retrying') + s.total('suspect'):,}",
        words.rate(s.arriving),
        words.rate(s.completing),
        words.seconds(s.window(0.5)),
        words.seconds(s.window(0.99)),
    )


def data(reading: Reading, conditions: Iterable[Condition], level: words.Level) -> dict[str, Any]:
    """For scripts. Seconds and counts; null where a figure does not exist, and for a drain time that never comes."""
    return {
        "level": level.name.lower(),
        "at": reading.now.isoformat(),
        "counted_at": reading.counted_at.isoformat(),
        "conditions": [
            {"alarm": c.alarm, "subject": c.subject, "severity": c.severity.value, "summary": c.summary}
            for c in conditions
        ],
        "subscriptions": {s.name: _figures(s) for s in reading.subscriptions},
    }


def _figures(s: Subscription) -> dict[str, Any]:
    return {
        "paused_at": s.paused_at.isoformat() if s.paused_at else None,
        "receives_per_ack": s.receives_per_ack,
        "applied_p50": s.window(0.5),
        "applied_p99": s.window(0.99),
        "errors": dict(s.errors),
        "partitions": [
            {
                "partition": p.part,
                "depth": p.depth,
                "in_flight": p.counted.in_flight,
                "retrying": p.counted.retrying,
                "waiting_seconds": p.waiting.total_seconds(),
                "oldest_age_seconds": p.age.total_seconds(),
                "lag_messages": p.counted.unreceived,
                "lag_seconds": p.lag.total_seconds(),
                "arrivals_per_minute": p.arriving,
                "completions_per_minute": p.completing,
                "drain_seconds": None if p.drains_in == GROWING else p.drains_in.total_seconds(),
                "growing": p.drains_in == GROWING,
            }
            for p in s.partitions
        ],
    }
