"""The benchmarks of intake, tiny, so that they do not rot: real web servers, workers and mail sink."""

import os
from collections.abc import Iterator

import pytest

from tests.benchmarks import intake, server, site

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(intake, "WINES", 40)
    monkeypatch.setattr(intake, "ALERTS", 8)
    monkeypatch.setattr(site, "DATABASE", f"bench-intake-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}")
    with server.running():
        yield
        server.drop(site.DATABASE)


def test_single_intake_is_measured_beside_the_bare_views(capsys: pytest.CaptureFixture[str]) -> None:
    assert intake.single(runs=1, seconds=0.5) > 0
    said = capsys.readouterr().out
    for name in (intake.OURS, intake.BARE, intake.BARER):
        assert f"run 1  {name}" in said
    assert "(bar: 0.5)" in said


def test_a_burst_is_taken_and_drained_and_every_mail_that_is_due_comes_through_a_brownout() -> None:
    assert intake.burst(1, scale=0.01) > 0
    assert 0 < intake.promise(scale=0.01) < intake.PROMISE_SECONDS
    assert server.execute("SELECT count(*) > 0 FROM alerts_notification", site.DATABASE) == [(True,)]
