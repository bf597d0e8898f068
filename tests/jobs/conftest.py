"""The queue under test: its own routes, and a table its handlers write to."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from jobs.messages import NewMessage
from jobs.outbox import publish
from jobs.subscriptions import load_routes
from jobs.sync import ensure_subscriptions
from tests.jobs import routes


@pytest.fixture
def queue_db(transactional_db: None, settings: Any) -> Iterator[None]:
    """A database whose subscriptions are those of tests/jobs/routes.py and no others."""
    settings.QUEUE_ROUTES = "tests.jobs.routes"
    settings.RETRY_BACKOFF_BASE = timedelta(hours=10)  # no retry comes due within a test by itself
    load_routes.cache_clear()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_subscription")
        cursor.execute("DROP TABLE IF EXISTS test_effect")
        cursor.execute(
            "CREATE TABLE test_effect (id bigint GENERATED ALWAYS AS IDENTITY, event_id text, key text, seq int,"
            " receive_count int)"
        )
    ensure_subscriptions()
    yield
    routes.before_effect.clear()
    routes.perform_with.clear()
    load_routes.cache_clear()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS test_effect")
        cursor.execute("DELETE FROM jobs_subscription")
    settings.QUEUE_ROUTES = "winecellar.routes"
    ensure_subscriptions()
    load_routes.cache_clear()


Publish = Callable[..., list[str]]


@pytest.fixture
def send(queue_db: None) -> Publish:
    """Publish things: send("a", "b", "a") publishes three with these keys, numbered in order."""
    counter = iter(range(1, 1_000_000))

    def publish_keys(*keys: str, type_: str = "thing.happened", **body: Any) -> list[str]:
        with transaction.atomic():
            return publish([NewMessage(type_, key, {"seq": next(counter), **body}) for key in keys])

    return publish_keys


def rows(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


def effects(order: str = "id") -> list[str]:
    return [event_id for (event_id,) in rows(f"SELECT event_id FROM test_effect ORDER BY {order}")]


def make_visible() -> None:
    """Let every backoff and every lease run out, as time would."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_delivery SET visible_at = clock_timestamp() - interval '1 ms'")
