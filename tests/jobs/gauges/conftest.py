"""The gauges under test: the queue of tests/jobs/routes.py, a census whenever a test asks, and time that passes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from jobs.gauges import census
from jobs.gauges.reading import Reading, read
from jobs.gauges.tally import tally
from jobs.schedule import store
from tests.jobs.conftest import queue_db, send

__all__ = ["queue_db", "send"]


@pytest.fixture
def counting(queue_db: None, settings: Any) -> Callable[[], Reading]:
    """Counts as a watchman does, and reads. Arrivals are counted from ten minutes before the first time."""
    settings.CENSUS_SHARE = 1e9  # a census may follow another at once
    tally.take()  # what other tests left uncounted
    census.take()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_sampler SET arrivals_until = clock_timestamp() - interval '10 minutes'")

    def count() -> Reading:
        assert census.take()
        return read(store.now())

    return count


def pass_time(by: timedelta) -> None:
    """Everything in the queue came, was handed out and failed that much earlier; backoffs run on."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_message SET published_at = published_at - %s", [by])
        cursor.execute(
            "UPDATE jobs_delivery SET published_at = published_at - %s, first_received_at = first_received_at - %s,"
            " visible_at = CASE WHEN first_received_at IS NULL THEN visible_at - %s ELSE visible_at END",
            [by, by, by],
        )
