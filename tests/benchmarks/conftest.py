"""The benchmarks' own tests share one server, which whoever is done with it stops: so one process has them all."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("benchmarks"))
