"""The bars that the queue has to clear, each a line of its own: what was asked, what came out, met or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.measure import middle
from tests.benchmarks.scenarios import Bench
from tests.benchmarks.systems import OURS, PLAIN_SQL, REFERENCE, SYSTEMS

Found = float | None


class Readings:
    """The records by what they are of. `None` wherever something was not measured or failed."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def of(self, scenario: str, system: str, case: str) -> list[dict[str, Any]]:
        return [
            record
            for record in self.bench.records
            if (record["scenario"], record["system"], record["case"]) == (scenario, system, case)
            and "failed" not in record
        ]

    def values(self, scenario: str, system: str, case: str, figure: str = "rate") -> dict[int, float]:
        """By run."""
        records = self.of(scenario, system, case)
        return {record["run"]: float(record[figure]) for record in records if figure in record}

    def median(self, scenario: str, system: str, case: str, figure: str = "rate") -> Found:
        values = self.values(scenario, system, case, figure)
        return middle(list(values.values())) if values else None

    def ratio(self, over: tuple[Any, ...], under: tuple[Any, ...]) -> Found:
        """The median of the runs' ratios: what both met in one run is the same machine at the same hour."""
        above, below = self.values(*over), self.values(*under)
        ratios = [above[run] / below[run] for run in above if run in below]
        return middle(ratios) if ratios else None


@dataclass(frozen=True)
class Bar:
    text: str
    limit: float
    found: Callable[[Readings], Found]
    at_most: bool = False
    unit: str = " ×"

    def met(self, found: float) -> bool:
        return found <= self.limit if self.at_most else found >= self.limit


def _against(peer: str, case: str) -> Callable[[Readings], Found]:
    return lambda r: r.ratio(("drain", OURS, case), ("drain", peer, case))


def _best_peer_latency(figure: str) -> Callable[[Readings], Found]:
    def found(readings: Readings) -> Found:
        ours = readings.median("latency", OURS, "idle", figure)
        others = [readings.median("latency", name, "idle", figure) for name in SYSTEMS if name != OURS]
        best = min((value for value in others if value is not None), default=None)
        return ours / best if ours is not None and best else None

    return found


def _median_peer_single(readings: Readings) -> Found:
    ours = readings.median("publish", OURS, "one")
    others = [readings.median("publish", name, "one") for name in SYSTEMS if name != OURS]
    present = [value for value in others if value is not None]
    return ours / middle(present) if ours and present else None


def _growth(readings: Readings) -> Found:
    sizes = [record["memory_mb"] for record in readings.of("backlog", OURS, "huge")]
    grown = [end - early for early, end in sizes]
    return max(grown) if grown else None


def bars(bench: Bench) -> list[Bar]:
    small, large, huge = (f"{n:,}" for n in (bench.size.small, bench.size.large, bench.size.huge))
    history = ("effect", OURS, "price history")
    return [
        Bar(f"drain of {large} by one process, against {REFERENCE}", 1.3, _against(REFERENCE, f"{large} by 1")),
        Bar(f"drain of {large} by two processes, against {REFERENCE}", 1.2, _against(REFERENCE, f"{large} by 2")),
        Bar(f"drain of {small} by one process, against {REFERENCE}", 1.2, _against(REFERENCE, f"{small} by 1")),
        Bar(f"drain of {small} by two processes, against {REFERENCE}", 1.2, _against(REFERENCE, f"{small} by 2")),
        Bar(f"drain of {large} by one process, against pgqueuer", 3.0, _against("pgqueuer", f"{large} by 1")),
        Bar(f"drain of {small} by one process, against procrastinate", 50, _against("procrastinate", f"{small} by 1")),
        Bar(f"drain of {small} by one process, against django-ox", 50, _against("django-ox", f"{small} by 1")),
        Bar(
            f"{large} with the price history written, against {REFERENCE} doing nothing",
            1.0,
            lambda r: r.ratio(history, ("effect", REFERENCE, "no-op")),
        ),
        Bar(
            "the same against plain SQL on one connection, bodies through Python",
            1.0,
            lambda r: r.ratio(history, ("effect", PLAIN_SQL, "through Python")),
        ),
        Bar(
            "the same against plain SQL on one connection, bodies never leaving the server",
            1.0,
            lambda r: r.ratio(history, ("effect", PLAIN_SQL, "in SQL alone")),
        ),
        Bar(
            f"a backlog of {huge} against one of {large}",
            0.8,
            lambda r: r.ratio(("backlog", OURS, "huge"), ("backlog", OURS, "small")),
        ),
        Bar(
            f"{large} of churn under a held snapshot against none held",
            0.8,
            lambda r: r.ratio(("snapshot", OURS, "held", "churn"), ("snapshot", OURS, "clean", "churn")),
        ),
        Bar(
            f"{small} after that churn under the held snapshot against none held",
            0.8,
            lambda r: r.ratio(("snapshot", OURS, "held"), ("snapshot", OURS, "clean")),
        ),
        Bar("idle latency, p50 against the best peer's", 1.0, _best_peer_latency("p50"), at_most=True),
        Bar("idle latency, p99 against the best peer's", 1.0, _best_peer_latency("p99"), at_most=True),
        Bar(
            "without LISTEN, p99 within the poll interval",
            1_000,
            lambda r: r.median("latency", OURS, "without LISTEN", "p99"),
            at_most=True,
            unit=" ms",
        ),
        Bar(
            "one event per transaction to three subscriptions, against the median peer's one job",
            0.8,
            _median_peer_single,
        ),
        Bar(
            "bulk publishing to three subscriptions",
            20_000,
            lambda r: r.median("publish", OURS, "bulk"),
            unit=" events/s",
        ),
        Bar(f"worker memory over {huge} messages", 20, _growth, at_most=True, unit=" MB grown"),
    ]
