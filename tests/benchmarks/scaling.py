"""What more workers bring, and what ends it: `python -m tests.benchmarks.scaling` (two minutes on two cores; --quick).

1, 2, 4 and 8 worker processes drain the same backlog, without an effect and with the price history written. Beside each
rate stands what was busy: cores by the workers and by the server, of those there are, and the log's bytes. Whoever else
uses the machine is not seen, so the last column is true on one that does nothing else; the load as it began is told.
"""

from __future__ import annotations

import argparse
import os

from tests.benchmarks import measure, server
from tests.benchmarks.systems import OURS, SYSTEMS

WORKERS = (1, 2, 4, 8)
KINDS = ("noop", "price-history")
COUNT, QUICK = 40_000, 5_000
# From so much of all cores on, more processes only wait for each other.
SATURATED = 0.9


def verdict(used: float, cores: int, before: float | None, rate: float) -> str:
    """What holds it up, as far as can be seen from outside."""
    if used >= SATURATED * cores:
        return "the cores"
    if before is not None and rate < 1.1 * before:
        return "not the cores: disk or locks"
    return "nothing yet"


def line(kind: str, workers: int, count: int, before: float | None) -> tuple[str, float]:
    system = SYSTEMS[OURS]
    measure.fresh(system)
    measure.fill(system, count, kind)
    drained = measure.drain(system, count, workers, kind)
    cores = len(os.sched_getaffinity(0))
    by_workers, by_server = (cpu * drained.rate / 1e6 for cpu in (drained.cpu_us, drained.server_cpu_us))
    held_up_by = verdict(by_workers + by_server, cores, before, drained.rate)
    wal = drained.wal_bytes * drained.rate / 1e6
    row = f"| {workers} | {drained.rate:,.0f} | {by_workers:.2f} | {by_server:.2f} | {wal:.1f} | {held_up_by} |"
    return row, drained.rate


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scaling", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    count = QUICK if parser.parse_args().quick else COUNT
    with server.running():
        measure.prepare(SYSTEMS[OURS])
        for kind in KINDS:
            cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
            print(f"\n{count:,} deliveries, {kind}; {cores} cores, load {load:.1f}\n")
            print("| workers | deliveries/s | cores, workers | cores, server | WAL, MB/s | held up by |")
            print("| --- | --- | --- | --- | --- | --- |", flush=True)
            before = None
            for workers in WORKERS:
                row, before = line(kind, workers, count, before)
                print(row, flush=True)


if __name__ == "__main__":
    main()
