"""The report's sections, a table each: medians of the rates and costs, and the runs' ratios."""

from __future__ import annotations

from tests.benchmarks.bars import Readings
from tests.benchmarks.scenarios import Bench
from tests.benchmarks.systems import OURS, PLAIN_SQL, REFERENCE, SYSTEMS

DRAIN = """
## Draining

No-op jobs are in the table. The worker processes are up, connected and waiting in their first claim, because the
driver holds the table locked; the clock runs from when it lets go until the database says that nothing is left. CPU
(of the worker processes, and of all the server's), WAL and commits are per job, with one process. CPU time hardly
depends on who else uses the machine; on a busy one it says more than the rate. Slow systems get fewer jobs, as shown.
"""
EFFECT = """
## With the price history written

{count} events, one process. Plain SQL leases 500 and commits, then deletes, writes the ledger and the history, and
commits; it knows no order, no suspects and no retry.
"""
BACKLOG = """
## A deep backlog

One process.
"""
SNAPSHOT = """
## Under another session's held snapshot

A REPEATABLE READ transaction is opened before the first job and kept open throughout. One process, jobs/s.
"""
LATENCY = """
## Waking an idle worker

From the add's commit to the handler's start, {count} jobs at 50 a second, milliseconds.
"""
PUBLISH = """
## Publishing

Ours writes the message and a delivery for each of three subscriptions, so its bulk figure is three times as many
deliveries; the peers write one job. One connection; bulk in calls of 1,000, each committed. COPY writes the rows that
ours writes, four per event.
"""


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def drain(bench: Bench, readings: Readings) -> str:
    header = ["", "1 process, jobs/s", "ratio", "2 processes, jobs/s", "ratio"]
    header += ["client CPU µs", "server CPU µs", "WAL bytes", "commits"]
    text = DRAIN
    for count in (bench.size.small, bench.size.large):
        rows = [row for name in SYSTEMS if (row := _drain_row(readings, name, count))]
        if rows:
            text += f"\n### {count:,} jobs\n\n" + table(header, rows)
    return text


def _drain_row(readings: Readings, name: str, count: int) -> list[str] | None:
    slow = SYSTEMS[name].slow
    cells = [f"{name} ({slow:,} jobs)" if slow and slow < count else name]
    for processes in (1, 2):
        case = f"{count:,} by {processes}"
        ratio = readings.ratio(("drain", name, case), ("drain", REFERENCE, case))
        cells += [number(readings.median("drain", name, case)), number(ratio, 2)]
    if cells[1] == cells[3] == "–":
        return None
    for figure, digits in (("cpu_us", 1), ("server_cpu_us", 1), ("wal_bytes", 0), ("commits", 4)):
        cells.append(number(readings.median("drain", name, f"{count:,} by 1", figure), digits))
    return cells


def effect(bench: Bench, readings: Readings) -> str:
    cases = (
        (OURS, "price history", "ours, history row written"),
        (REFERENCE, "no-op", f"{REFERENCE}, doing nothing"),
        (PLAIN_SQL, "through Python", f"{PLAIN_SQL}, bodies through Python"),
        (PLAIN_SQL, "in SQL alone", f"{PLAIN_SQL}, bodies never leaving the server"),
    )
    rows = []
    for system, case, label in cases:
        ratio = readings.ratio(("effect", OURS, "price history"), ("effect", system, case))
        cells = [label, number(readings.median("effect", system, case)), number(ratio, 2)]
        for figure, digits in (("cpu_us", 1), ("server_cpu_us", 1), ("wal_bytes", 0)):
            cells.append(number(readings.median("effect", system, case, figure), digits))
        rows.append(cells)
    header = ["", "messages/s", "ours is × this", "client CPU µs", "server CPU µs", "WAL bytes"]
    return EFFECT.format(count=f"{bench.size.large:,}") + "\n" + table(header, rows)


def backlog(bench: Bench, readings: Readings) -> str:
    rows = []
    for name in (OURS, REFERENCE):
        small, huge = (("backlog", name, case) for case in ("small", "huge"))
        sizes = [r["memory_mb"] for r in readings.of(*huge) if "memory_mb" in r]
        memory = " → ".join(f"{sum(pair[i] for pair in sizes) / len(sizes):.0f}" for i in (0, 1)) if sizes else "–"
        rates = [number(readings.median(*case)) for case in (small, huge)]
        rows.append([name, *rates, number(readings.ratio(huge, small), 2), memory])
    counts = (f"{count:,} waiting, jobs/s" for count in (bench.size.large, bench.size.huge))
    return BACKLOG + "\n" + table(["", *counts, "ratio", "resident MB, at a tenth → at the end"], rows)


def snapshot(bench: Bench, readings: Readings) -> str:
    rows = []
    for name in SYSTEMS:
        cells = [name]
        for figure in ("churn", "rate"):
            clean, held = (("snapshot", name, case, figure) for case in ("clean", "held"))
            medians = [number(readings.median(*case)) for case in (clean, held)]
            cells += [*medians, number(readings.ratio(held, clean), 2)]
        if cells[1] != "–":
            rows.append(cells)
    large, small = f"{bench.size.large:,}", f"{bench.size.small:,}"
    header = ["", f"{large} clean", "held", "ratio", f"then {small} clean", "held", "ratio"]
    return SNAPSHOT + "\n" + table(header, rows)


def latency(bench: Bench, readings: Readings) -> str:
    rows = []
    for name, case in [*((name, "idle") for name in SYSTEMS), (OURS, "without LISTEN")]:
        figures = [readings.median("latency", name, case, figure) for figure in ("p50", "p99", "longest")]
        if figures[0] is not None:
            rows.append([name if case == "idle" else f"{name} {case}", *(number(f, 1) for f in figures)])
    return LATENCY.format(count=bench.size.pace) + "\n" + table(["", "p50", "p99", "longest"], rows)


def publish(bench: Bench, readings: Readings) -> str:
    rows = []
    for name in [*SYSTEMS, "COPY of the same rows"]:
        one, bulk = (readings.median("publish", name, case) for case in ("one", "bulk"))
        if one or bulk:
            note = (
                " (no bulk call: single adds in one transaction)" if name in SYSTEMS and SYSTEMS[name].no_bulk else ""
            )
            rows.append([name + note, number(one), number(bulk)])
    return PUBLISH + "\n" + table(["", "one per transaction, events/s", "bulk, events/s"], rows)


SECTIONS = {
    "drain": drain,
    "effect": effect,
    "backlog": backlog,
    "snapshot": snapshot,
    "latency": latency,
    "publish": publish,
}
