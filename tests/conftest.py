"""What all tests share. The environment is set by tests/environment.py, before Django reads it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

# What the tests of a folder share, so that one process has them all.
SHARED = {
    "browser": "a browser and a site",
    "replicas": "a copy of the server, which takes some seconds",
    "benchmarks": "a server, which whoever is done with it stops",
}


# First, for xdist's own hook reads the marks and comes before those of folders.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0] if here in item.path.parents else ""
        if folder in SHARED:
            item.add_marker(pytest.mark.xdist_group(folder))


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
