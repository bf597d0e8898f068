"""`make bench`: installs the peers, measures everybody in one run, and writes docs/benchmarks.md.

python -m tests.benchmarks                 everything; about three quarters of an hour on two cores
python -m tests.benchmarks --quick         ours and graphile-worker, once, small; about three minutes; not into docs/
python -m tests.benchmarks --only latency  one scenario (may be given several times)
python -m tests.benchmarks --keep --only latency  the same, and all else as it was measured before
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import install, measure, report, server
from tests.benchmarks.process import BenchError
from tests.benchmarks.scenarios import FULL, QUICK, SCENARIOS, Bench
from tests.benchmarks.systems import OURS, SYSTEMS
from winecellar.embedded import ROOT

DOCUMENT = ROOT / "docs" / "benchmarks.md"
RECORDS = install.HOME / "records.json"


def main() -> None:
    # Told to end, or interrupted: the workers and the server that this run started must end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = parse()
    size = QUICK if options.quick else FULL
    size = replace(size, runs=options.runs or size.runs, peers=tuple(options.peer or size.peers))
    names = options.only or list(SCENARIOS)
    bench = Bench(size)
    if options.keep:
        keep(bench, but=names)
    bench.sittings.append(sitting(names))
    reasons = install.install()
    with server.running():
        for name in (OURS, *size.peers):
            prepare(bench, name, reasons)
        for name in names:
            SCENARIOS[name](bench)
            RECORDS.write_text(json.dumps({"sittings": bench.sittings, "records": bench.records}, indent=1))
        path = options.write or (install.HOME / "quick.md" if options.quick else DOCUMENT)
        report.write(bench, path, shared=options.shared)
        for name in (OURS, *size.peers):
            server.drop(f"bench-{name}")
            server.drop(f"bench-{name}-empty")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Compare the queue with its peers.")
    parser.add_argument("--quick", action="store_true", help="ours and graphile-worker, once, small numbers")
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), help="only this scenario")
    parser.add_argument(
        "--peer", action="append", choices=[name for name in SYSTEMS if name != OURS], help="only this peer"
    )
    parser.add_argument("--keep", action="store_true", help="keep what earlier runs measured of other scenarios")
    parser.add_argument("--runs", type=int, help="how often each is measured")
    parser.add_argument("--shared", action="store_true", help="say in the document that others were using the machine")
    parser.add_argument("--write", type=Path, help="write the document there")
    return parser.parse_args()


def keep(bench: Bench, *, but: Sequence[str]) -> None:
    """Take over what was measured before, of every scenario that is not measured now."""
    kept = json.loads(RECORDS.read_text())
    bench.sittings += kept["sittings"]
    bench.records += [record for record in kept["records"] if record["scenario"] not in but]


def sitting(names: Sequence[str]) -> str:
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {load} as it began ({', '.join(names)})"


def prepare(bench: Bench, name: str, reasons: dict[str, str]) -> None:
    system = SYSTEMS[name]
    why = reasons.get(system.package, "") if system.package else ""
    if not why:
        try:
            measure.prepare(system)
        except BenchError as error:
            why = str(error)
    if why:
        bench.missing[name] = why
        print(f"{name}: not run: {why}", flush=True)


if __name__ == "__main__":
    main()
