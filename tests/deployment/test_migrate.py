"""A migration waits for a table no longer than MIGRATION_LOCK_LIMIT, lets the others go first, and tries again."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.commands import migrate
from django.db import OperationalError, connection, transaction

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reader() -> Iterator[psycopg.Connection]:
    """Somebody in a long transaction who has read wines: no ALTER of them gets its lock."""
    parameters = {
        k: v
        for k, v in connection.get_connection_params().items()
        if k in ("dbname", "user", "password", "host", "port")
    }
    with psycopg.connect(**parameters) as there:
        there.execute("SELECT count(*) FROM pricing_wine")
        yield there


@pytest.fixture
def run(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`manage.py migrate` with one migration that alters wines; `between` runs before each try."""
    settings.MIGRATION_LOCK_LIMIT, settings.MIGRATION_LOCK_TRIES = timedelta(milliseconds=50), 3

    def run_with(between: Callable[[int], None]) -> str:
        tries = []

        def alter(self: Any, *args: Any, **options: Any) -> None:
            tries.append(1)
            between(len(tries))
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("ALTER TABLE pricing_wine ADD COLUMN hue text")

        monkeypatch.setattr(migrate.Command, "handle", alter)
        told = StringIO()
        call_command("migrate", stderr=told, skip_checks=True)
        return told.getvalue()

    return run_with


def drop() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pricing_wine DROP COLUMN IF EXISTS hue")


def limit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        return str(cursor.fetchone()[0])


def test_it_gives_up_after_its_tries_and_leaves_nothing_behind(
    reader: psycopg.Connection, run: Callable[..., str]
) -> None:
    tries: list[int] = []
    with pytest.raises(OperationalError, match="lock timeout"):
        run(tries.append)
    assert tries == [1, 2, 3]
    assert limit() == "0", "whoever uses the connection next waits as ever"
    with connection.cursor() as cursor:  # the queue for the lock is empty: nobody waits behind it
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        assert cursor.fetchone() == (0,)


def test_it_goes_on_once_the_table_is_free(reader: psycopg.Connection, run: Callable[..., str]) -> None:
    try:
        told = run(lambda number: reader.rollback() if number == 2 else None)
        assert told == "A table was in use for 50 ms. Tried again soon, 2 more times.\n"
    finally:
        drop()


def test_another_failure_is_not_tried_again(run: Callable[..., str]) -> None:
    tries: list[int] = []

    def fail(number: int) -> None:
        tries.append(number)
        raise OperationalError("the disk is full")

    with pytest.raises(OperationalError, match="disk"):
        run(fail)
    assert tries == [1]
