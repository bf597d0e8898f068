"""The matching benchmark, tiny, so that it does not rot: every watcher is told, some alerts of the many are."""

from collections.abc import Iterator

import pytest

from tests.benchmarks import matching, server

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module", autouse=True)
def database() -> Iterator[None]:
    with server.running():
        matching.make(matching.Size(alerts=400, wines=40, people=20, watchers=300))
        yield
        server.drop(matching.DATABASE)


def test_everybody_who_watches_one_wine_is_told_at_once_and_of_many_wines_some() -> None:
    assert matching.child("hot")["commands"] == 300
    assert 300 < matching.child("batches", "40", "1")["mails"] < 700
