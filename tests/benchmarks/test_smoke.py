"""The benchmarks' own part, tiny, so that it does not rot: our processes, the gate, the limits, the report."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks import catalogue, measure, report, scenarios, server, tracing
from tests.benchmarks.bars import Readings, bars
from tests.benchmarks.scenarios import QUICK, Bench
from tests.benchmarks.systems import OURS, SYSTEMS
from winecellar.embedded import ROOT

pytestmark = pytest.mark.processes
TINY = replace(QUICK, small=1_000, large=1_000, huge=1_000, add=20, pace=20, peers=())


@pytest.fixture(scope="module", autouse=True)
def database() -> Iterator[None]:
    with server.running():
        measure.prepare(SYSTEMS[OURS])
        yield
        server.drop(f"bench-{OURS}")
        server.drop(f"bench-{OURS}-empty")


def test_a_thousand_messages_are_published_and_drained_by_two_real_workers() -> None:
    system = SYSTEMS[OURS]
    measure.fresh(system)
    measure.fill(system, 1_000)
    drained = measure.drain(system, 1_000, 2)
    assert drained.rate > 0
    assert drained.wal_bytes > 0
    assert drained.commits > 0
    assert server.execute("SELECT count(*) FROM processed_messages", f"bench-{OURS}") == [(1_000,)]


def test_scenarios_run_and_their_figures_reach_the_bars_and_the_report(tmp_path: Path) -> None:
    bench = Bench(TINY)
    for scenario in (scenarios.effect, scenarios.latency, scenarios.publish):
        scenario(bench)
    assert [record for record in bench.records if "failed" in record] == []
    report.write(bench, tmp_path / "benchmarks.md", shared=True)
    text = (tmp_path / "benchmarks.md").read_text()
    found = [bar for bar in bars(bench) if bar.found(Readings(bench)) is not None]
    assert len(found) == 4  # those that need no peer: two against plain SQL, polling, and bulk publishing
    assert all(bar.text in text for bar in found)
    assert str(ROOT) not in text


def test_draining_and_publishing_are_measured_without_tracing_and_with_an_sdk() -> None:
    found = tracing.run(0, jobs=500, singles=10, cases=("absent", "sdk"))
    assert min(figure for case in found.values() for figure in case.values()) > 0


def test_a_small_catalogue_is_taken_and_the_rows_that_were_changed_are_those_that_are_counted_so() -> None:
    taken, server_cpu, plain = catalogue.measured(catalogue.read(["--rows", "400"]))
    expected = dict.fromkeys(taken["counts"], 0)
    assert taken["counts"] == {**expected, "changed": 20, "unchanged": 380}
    assert min(taken["rows_per_second"], taken["cpu"], plain) > 0
    assert server_cpu >= 0
    assert not catalogue.exists(catalogue.DATABASE)
