"""The pages' benchmark, tiny, so that it does not rot: every kind of page is asked for, and answers."""

from collections.abc import Iterator

import pytest

from tests.benchmarks import pages, server

pytestmark = pytest.mark.processes
SIZE = pages.Size(wines=300, alerts=1_000, people=50, history=3_000, requests=2)


@pytest.fixture(scope="module", autouse=True)
def database() -> Iterator[None]:
    with server.running():
        pages.make(SIZE)
        yield
        server.drop(pages.DATABASE)


def test_every_kind_of_page_is_measured() -> None:
    table = pages.child("measure", SIZE)
    assert table.count("| search, ") == 6
    assert "| a wine, all |" in table and "| an alert |" in table
