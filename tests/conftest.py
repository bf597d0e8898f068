"""What all tests share. The environment is set by tests/environment.py, before Django reads it."""

from collections.abc import Iterator
from typing import Any

import pytest

# What the tests of a folder share, so that one process has them all.
SHARED = {
    "browser": "a browser and a site",
    "replicas": "a copy of the server, which takes some seconds",
    "hosts": "a network and a server on it",
    "benchmarks": "a server, which whoever is done with it stops",
}


def shared_folder(nodeid: str) -> str | None:
    """The folder of a test such as tests/browser/test_pages.py::test_…, if its tests belong together."""
    folder = nodeid.split("::", maxsplit=1)[0].split("/")[-2:-1]
    return folder[0] if folder and folder[0] in SHARED else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each test to whoever is free, those that share something to one. (Groups of xdist 3.8 do not reach pytest 9.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatIsShared(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared_folder(nodeid) or nodeid

    return ByWhatIsShared(config, log)


@pytest.fixture(autouse=True)
def _leave_no_messages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Django empties only the tables it made; the queue's are made by SQL."""
    yield
    marker = request.node.get_closest_marker("django_db")
    if "transactional_db" in request.fixturenames or (marker and marker.kwargs.get("transaction")):
        from django.db import connection

        with request.getfixturevalue("django_db_blocker").unblock(), connection.cursor() as cursor:
            for table in ("jobs_message", "jobs_delivery", "processed_messages"):
                cursor.execute(f"DELETE FROM {table}")
