"""What all tests share. The environment is set by tests/environment.py, before Django reads it."""

from collections.abc import Iterator

import pytest


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
