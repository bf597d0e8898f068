"""Prepared statements: used again, and given up without harm where the session turns out not to be ours alone."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection

from jobs import prepared
from jobs.database import connection_is_lost, database_is_away

pytestmark = pytest.mark.django_db(transaction=True)
STATEMENT = "SELECT %s::bigint + 1"


@pytest.fixture(autouse=True)
def _prepares(db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.WORKER_PREPARES = True
    monkeypatch.setattr(prepared._Ours, "possible", True)
    connection.close()
    yield
    connection.close()


def ask(number: int, statement: str = STATEMENT) -> int:
    with prepared.cursor() as cursor:
        cursor.execute(statement, [number])
        return int(cursor.fetchone()[0])


def known_to_the_server() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", ["SELECT $1::bigint%"])
        return int(cursor.fetchone()[0])


def test_a_statement_is_prepared_at_its_first_use_and_once() -> None:
    assert [ask(n) for n in range(3)] == [1, 2, 3]
    assert known_to_the_server() == 1


def test_nothing_is_prepared_where_it_is_switched_off(settings: Any) -> None:
    settings.WORKER_PREPARES = False
    assert [ask(n) for n in range(3)] == [1, 2, 3]
    assert known_to_the_server() == 0


def test_another_session_behind_a_pooler_is_like_a_lost_connection_and_nothing_is_prepared_again() -> None:
    ask(1)
    with connection.cursor() as cursor:
        # What another server session behind a pooler looks like; psycopg would notice a plain DEALLOCATE.
        cursor.execute("DO 'BEGIN DEALLOCATE ALL; END'")
    with pytest.raises(OperationalError) as caught:
        ask(1)
    assert connection_is_lost(caught.value)
    assert database_is_away(caught.value), "to be tried again, and charged to nobody"
    connection.close()
    assert ask(1) == 2
    assert known_to_the_server() == 0


def test_a_column_changed_by_a_migration_is_like_a_lost_connection_and_a_new_one_plans_anew() -> None:
    statement = "SELECT changed FROM prepared_here WHERE changed = %s"
    try:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE prepared_here AS SELECT 1::int AS changed")
        assert ask(1, statement) == 1
        with connection.cursor() as cursor:
            cursor.execute("DO 'BEGIN ALTER TABLE prepared_here ALTER COLUMN changed TYPE bigint; END'")
        with pytest.raises(OperationalError) as caught:
            ask(1, statement)
        assert connection_is_lost(caught.value)
        connection.close()
        assert ask(1, statement) == 1
        assert prepared._Ours.possible
    finally:
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE prepared_here")
