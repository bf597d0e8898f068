"""The cellars' benchmark, tiny, so that it does not rot: both ways of valuing agree, and a file is imported."""

from collections.abc import Iterator

import pytest

from tests.benchmarks import cellars, server

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module", autouse=True)
def database() -> Iterator[None]:
    with server.running():
        cellars.make(cellars.Size(cellars=60, bottles=1_200, wines=300))
        yield
        server.drop(cellars.DATABASE)


def test_the_night_and_one_plain_statement_come_to_the_same_result() -> None:
    _, expected = cellars.plain()
    ours, found = cellars.valued()
    assert found == expected
    assert found[0][0] == ours["cellars"] == 60
    assert ours["transactions"] > 2


def test_a_file_is_imported_whole() -> None:
    took = cellars.imported(500)
    assert took["matched"] > 0


def test_pages_and_prices_are_timed_beside_the_run() -> None:
    assert set(cellars.child("pages", "1")) == {"cellar", "wine", "price"}
