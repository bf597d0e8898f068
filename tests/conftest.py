"""What all tests share: the embedded Postgres under its own data directory, and the cast."""

import os
from collections.abc import Iterator

import pytest

# Before Django reads the settings: tests have a server of their own, so that a running demo is left alone.
os.environ.setdefault("WINECELLAR_PG_NAME", "postgres-test")
os.environ.setdefault("WORKER_LISTEN", "false")
os.environ.setdefault("LOG_LEVEL", "WARNING")
os.environ.setdefault("EMAIL_URL", "memorymail://")

from winecellar import embedded

embedded.start_unless_external()


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
