"""Writes docs/benchmarks.md: the machine, the versions, a line for each bar, the tables, and what was not run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks import server
from tests.benchmarks.bars import Bar, Readings, bars
from tests.benchmarks.install import HERE, NODE, OX, PYTHON, groups, notes
from tests.benchmarks.scenarios import FULL, Bench
from tests.benchmarks.systems import REFERENCE
from tests.benchmarks.tables import SECTIONS, table

INTRODUCTION = """# How fast the queue is

Written by `make bench`. Every figure is the median of {runs}, every ratio the median of the runs' own ratios: in a run
the systems take turns, so a ratio compares the same machine at the same hour. Compare ratios, not rates, with other
machines.

- **Machine:** {machine}
- **Server, the same for all:** {server}
- **Date:** {sittings}{shared}{small}
- **Versions:** {versions}

Ours is `manage.py run_worker` as it ships: {lanes} connections per process; order by key, fence, receive count and
ledger on; every delivery claimed in one commit, and acked with its ledger row in another. Each peer has the fastest of
its documented settings; they stand at the top of its script in `tests/benchmarks/peers/`. {reference}, the fastest,
keeps no ledger, no order and no fence.
"""
SMALL = ". **A small run**: the bars are set for 20,000, 200,000 and 1,000,000 jobs, and medians of three runs"


def write(bench: Bench, path: Path, *, shared: bool) -> None:
    readings = Readings(bench)
    done = {record["scenario"] for record in bench.records}
    parts = [_introduction(bench, shared), _bars(bench, readings)]
    parts += [section(bench, readings) for name, section in SECTIONS.items() if name in done]
    parts.append(_remarks(bench))
    path.write_text("\n".join(part.strip("\n") + "\n" for part in parts))


def _introduction(bench: Bench, shared: bool) -> str:
    return INTRODUCTION.format(
        runs="one run" if bench.size.runs == 1 else f"{bench.size.runs} runs",
        machine=machine(),
        server=server.described(),
        sittings="; ".join(bench.sittings),
        shared=". **Others were using the machine all the while**, so rates are low and uneven" if shared else "",
        small="" if bench.size.huge >= FULL.huge and bench.size.runs >= FULL.runs else SMALL,
        versions=versions(),
        lanes=os.environ.get("WORKER_LANES", "2"),
        reference=REFERENCE,
    )


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = sorted({line.split(":")[1].strip() for line in lines if line.startswith("model name")})
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = platform.release().split("-")[0]
    return f"{os.cpu_count()} cores ({', '.join(models)}), {memory:.0f} GiB, Linux {kernel}"


def versions() -> str:
    node = json.loads((HERE / "package.json").read_text())["dependencies"]
    peers = [package.replace("==", " ") for group in groups() for package in group]
    peers += [f"{name} {number}" for name, number in node.items()]
    runtimes = f"{_said(PYTHON)} and Node.js {_said(NODE)}"
    ours = f"Python {platform.python_version()}, Django {version('django')}, psycopg {version('psycopg')}"
    return f"ours on {ours}; peers on {runtimes}: {', '.join(peers)}"


def _said(program: Path) -> str:
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "none"


def _bars(bench: Bench, readings: Readings) -> str:
    return "\n## The bars\n\n" + table(["what", "asked", "found", ""], [_bar(bar, readings) for bar in bars(bench)])


def _bar(bar: Bar, readings: Readings) -> list[str]:
    asked = f"{'≤' if bar.at_most else '≥'} {bar.limit:,g}{bar.unit}"
    found = bar.found(readings)
    if found is None:
        return [bar.text, asked, "not measured", ""]
    text = f"{found:,.0f}" if abs(found) >= 100 else f"{found:.2f}"
    return [bar.text, asked, text + bar.unit, "met" if bar.met(found) else "**not met**"]


def _remarks(bench: Bench) -> str:
    lines = [f"- {note}" for note in notes() if OX in bench.size.peers and OX not in bench.missing]
    lines += [f"- {name}: not run: {why}" for name, why in sorted(bench.missing.items())]
    failed = {(r["system"], r["scenario"], r["case"], r["failed"]) for r in bench.records if "failed" in r}
    lines += [f"- {system}, {scenario} {case}: {why}" for system, scenario, case, why in sorted(failed)]
    return "\n## Not run, failed, or other than documented\n\n" + ("\n".join(lines) or "Nothing.")
