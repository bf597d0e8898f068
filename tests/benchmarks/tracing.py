"""What tracing costs: draining and publishing in one run, the code without it, without an SDK, and with one.

python -m tests.benchmarks.tracing                  about ten minutes
python -m tests.benchmarks.tracing --jobs 20000 --runs 2

absent  the same code with the lines about tracing cut out of it
none    as it ships: no SDK is set up, no request said anything of its trace
sdk     an SDK that makes every span and throws it away

The bar: none drains at 0.98 of absent or better. Ratios are each run's own, and their median is told. Two runs of the
same code differ by more than that, so the lines are also timed alone, against what a delivery takes in the whole.
"""

from __future__ import annotations

import argparse
import signal
import sys
import timeit
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from statistics import median

from jobs import tracing
from tests.benchmarks import measure, server
from tests.benchmarks.process import database_of
from tests.benchmarks.systems import OURS, SYSTEMS

CASES = ("absent", "none", "sdk")
BATCH = 500  # of the route noop, tests/benchmarks/routes.py


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started must end with us
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.tracing", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--singles", type=int, default=2_000, help="published one to a transaction")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with server.running():
        measure.prepare(SYSTEMS[OURS])
        runs = [run(number, options.jobs, options.singles) for number in range(options.runs)]
        server.drop(database_of(SYSTEMS[OURS]))
        server.drop(f"{database_of(SYSTEMS[OURS])}-empty")
    for what in ("drain", "worker cpu", "fill", "single"):
        for case in CASES[1:]:
            ratios = [run[case][what] / run["absent"][what] for run in runs]
            bar = " (bar: 0.98)" if (what, case) == ("drain", "none") else ""
            print(f"{what}, {case}: {median(ratios):.3f} × absent{bar}, from {min(ratios):.3f} to {max(ratios):.3f}")
    each = 1 / median(run["none"]["drain"] for run in runs)
    single = 1 / median(run["none"]["single"] for run in runs)
    for what, line, batch, whole in (
        ("drained", lambda: tracing.process("noop", ()), BATCH, each),
        ("published one by one", lambda: tracing.send(()), 1, single),
    ):
        lines = alone(line) / batch
        print(f"{what}, none: of {whole * 1e6:.1f} µs each, {lines * 1e9:.1f} ns are the lines: {lines / whole:.3%}")


def alone(line: Callable[[], AbstractContextManager[object]], times: int = 200_000) -> float:
    """Seconds that a line about tracing takes where no SDK is set up, and nothing else: the best of ten."""

    def traced() -> None:
        with line():
            pass

    def empty() -> None:
        pass

    assert isinstance(line(), nullcontext), "somebody set up an SDK here"
    best, nothing = (min(timeit.repeat(code, number=times, repeat=10)) / times for code in (traced, empty))
    return best - nothing


def run(number: int, jobs: int, singles: int, cases: Sequence[str] = CASES) -> dict[str, dict[str, float]]:
    found = {}
    # Not always in the same order: who comes later finds a warmer, or a busier, machine.
    for case in cases if number % 2 == 0 else reversed(cases):
        ours = SYSTEMS[OURS]
        env = {"DJANGO_SETTINGS_MODULE": "tests.benchmarks.traced_settings", "TRACED": case}
        measure.fresh(ours)
        single = measure.add_one_by_one(ours, singles, "fan-out", **env)
        measure.fresh(ours)
        fill = measure.fill(ours, jobs, **env)
        drained = measure.drain(ours, jobs, 1, **env)
        found[case] = {"drain": drained.rate, "worker cpu": drained.cpu_us, "fill": fill, "single": single}
        print(
            f"run {number + 1}  {case:8} drain {drained.rate:>9,.0f}/s  {drained.cpu_us:5.1f} µs of CPU each  "
            f"fill {fill:>9,.0f}/s  single {single:>7,.0f}/s",
            flush=True,
        )
    return found


if __name__ == "__main__":
    main()
