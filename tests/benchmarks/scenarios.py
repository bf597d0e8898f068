"""What is measured, in order. A scenario takes a Bench and notes what came out; the bars and the report read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks import limits, measure, server
from tests.benchmarks.process import BenchError, database_of
from tests.benchmarks.systems import OURS, PLAIN_SQL, REFERENCE, SYSTEMS, System


@dataclass(frozen=True)
class Size:
    """How many of everything. `peers`: whom to measure beside ours."""

    runs: int
    small: int
    large: int
    huge: int
    add: int
    pace: int
    peers: tuple[str, ...]


FULL = Size(3, 20_000, 200_000, 1_000_000, 1_000, 300, tuple(name for name in SYSTEMS if name != OURS))
QUICK = Size(1, 5_000, 20_000, 50_000, 200, 60, (REFERENCE,))


@dataclass
class Bench:
    size: Size
    missing: dict[str, str] = field(default_factory=dict)  # system → why it was not run
    records: list[dict[str, Any]] = field(default_factory=list)
    sittings: list[str] = field(default_factory=list)  # when what was measured, and how busy the machine was
    began: float = field(default_factory=time.monotonic)

    def systems(self, *, slow: bool = True, only: Sequence[str] = ()) -> list[System]:
        names = [name for name in (OURS, *self.size.peers) if name not in self.missing]
        return [SYSTEMS[n] for n in names if (slow or not SYSTEMS[n].slow) and (not only or n in only)]

    @contextmanager
    def noting(self, scenario: str, system: str, run: int, case: str) -> Iterator[dict[str, Any]]:
        """What is put into the yielded dict is kept; a failure is kept as `failed`, and the rest goes on."""
        record: dict[str, Any] = {"scenario": scenario, "system": system, "run": run, "case": case}
        try:
            yield record
        except BenchError as error:
            record["failed"] = str(error)
        self.records.append(record)
        figures = {key: value for key, value in record.items() if key not in ("scenario", "system", "run", "case")}
        text = "  ".join(f"{key} {shown(value)}" for key, value in figures.items() if not isinstance(value, tuple))
        print(f"{time.monotonic() - self.began:6.0f} s  {scenario} {case}, run {run + 1}: {system}: {text}", flush=True)


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def drain(bench: Bench) -> None:
    """A backlog of no-ops, by one process and by two."""
    for count in (bench.size.small, bench.size.large):
        for processes in (1, 2):
            for run in range(bench.size.runs):
                for system in bench.systems(slow=count == bench.size.small):
                    jobs = min(count, system.slow or count)
                    case = f"{count:,} by {processes}"
                    with bench.noting("drain", system.name, run, case) as record:
                        measure.fresh(system)
                        record["filled"] = measure.fill(system, jobs)
                        record.update(measure.drain(system, jobs, processes).record())


def effect(bench: Bench) -> None:
    """The price-history effect written, against graphile-worker doing nothing and against plain SQL."""
    count = bench.size.large
    ours = SYSTEMS[OURS]
    for run in range(bench.size.runs):
        with bench.noting("effect", OURS, run, "price history") as record:
            measure.fresh(ours)
            measure.fill(ours, count, "price-history")
            record.update(measure.drain(ours, count, 1, "price-history").record())
            rows = server.execute("SELECT count(*) FROM pricing_pricehistory", database_of(ours))[0][0]
            if rows != count:
                raise BenchError(f"{rows} rows of history for {count} events")
        for system in bench.systems(only=(REFERENCE,)):
            with bench.noting("effect", system.name, run, "no-op") as record:
                measure.fresh(system)
                measure.fill(system, count)
                record.update(measure.drain(system, count, 1).record())
        for name, step in (("through Python", limits.through_python), ("in SQL alone", limits.in_sql)):
            with bench.noting("effect", PLAIN_SQL, run, name) as record:
                measure.fresh(ours)
                measure.fill(ours, count, "price-history")
                record["rate"] = limits.plain_sql(step)


def backlog(bench: Bench) -> None:
    """A million waiting: the rate must not depend on the depth, nor the worker's memory on how much it has done."""
    for run in range(bench.size.runs):
        for system in bench.systems(only=(OURS, REFERENCE)):
            for case, count in (("small", bench.size.large), ("huge", bench.size.huge)):
                with bench.noting("backlog", system.name, run, case) as record:
                    measure.fresh(system)
                    measure.fill(system, count)
                    record.update(measure.drain(system, count, 1).record())


def snapshot(bench: Bench) -> None:
    """Churn, then a small backlog, with and without another session's old snapshot held open throughout."""
    for run in range(bench.size.runs):
        for system in bench.systems(slow=False):
            for held in (False, True):
                with bench.noting("snapshot", system.name, run, "held" if held else "clean") as record:
                    measure.fresh(system)
                    with measure.held_snapshot(system) if held else _nothing():
                        measure.fill(system, bench.size.large)
                        record["churn"] = measure.drain(system, bench.size.large, 1).rate
                        measure.fill(system, bench.size.small)
                        record.update(measure.drain(system, bench.size.small, 1).record())


def latency(bench: Bench) -> None:
    """An idle worker, woken by one job at a time."""
    for run in range(bench.size.runs):
        for system in bench.systems():
            with bench.noting("latency", system.name, run, "idle") as record:
                measure.fresh(system)
                record.update(measure.latency(system, bench.size.pace))
        with bench.noting("latency", OURS, run, "without LISTEN") as record:
            measure.fresh(SYSTEMS[OURS])
            record.update(measure.latency(SYSTEMS[OURS], bench.size.pace, WORKER_LISTEN="false"))


def publish(bench: Bench) -> None:
    """Adding: one per transaction, and in bulk. Ours goes to three subscriptions, the peers' to their one queue."""
    for run in range(bench.size.runs):
        for system in bench.systems():
            kind = "fan-out"
            jobs = min(bench.size.small, system.slow or bench.size.small)
            with bench.noting("publish", system.name, run, "one") as record:
                measure.fresh(system)
                record["rate"] = measure.add_one_by_one(system, bench.size.add, kind)
            with bench.noting("publish", system.name, run, "bulk") as record:
                measure.fresh(system)
                record["rate"] = measure.fill(system, jobs, kind)
        with bench.noting("publish", "COPY of the same rows", run, "bulk") as record:
            measure.fresh(SYSTEMS[OURS])
            record["rate"] = limits.copy(bench.size.small, (1, 2, 3))


@contextmanager
def _nothing() -> Iterator[None]:
    yield


SCENARIOS: dict[str, Callable[[Bench], None]] = {
    function.__name__: function for function in (drain, effect, backlog, snapshot, latency, publish)
}
