"""How the statements of a hot path run: their plans are kept, and several are sent before the first is answered."""

import re
import threading
from contextlib import nullcontext

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from jobs import prepared
from jobs.database import by_index, connection_is_lost, is_away, pipelined, run, sqlstate

pytestmark = pytest.mark.django_db(transaction=True)
MARKED = "SELECT %s::int + 1 AS kept_plan"


def kept_plans():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%kept_plan%'")
        return cursor.fetchone()[0]


def test_a_statement_is_prepared_after_some_runs():
    connection.close()
    assert kept_plans() == 0
    assert [run(MARKED, [n]).fetchone() for n in range(10)] == [(n + 1,) for n in range(10)]
    assert kept_plans() == 1


def test_without_prepared_statements_it_never_is():
    connection.close()
    options = connection.settings_dict["OPTIONS"]
    connection.settings_dict["OPTIONS"] = {**options, "prepare_threshold": None}
    try:
        assert [run(MARKED, [n]).fetchone() for n in range(10)] == [(n + 1,) for n in range(10)]
        assert kept_plans() == 0
    finally:
        connection.close()
        connection.settings_dict["OPTIONS"] = options


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "in a pipeline"])
def test_behind_a_pooler_it_fails_once_as_a_lost_connection_does_and_nothing_is_prepared_again(at_once, monkeypatch):
    monkeypatch.setattr(prepared._Ours, "possible", True)
    connection.close()
    assert [run(MARKED, [n]).fetchone() for n in range(10)] == [(n + 1,) for n in range(10)]
    with connection.cursor() as cursor:
        # What another server session behind a pooler looks like; psycopg would notice a plain DEALLOCATE.
        cursor.execute("DO 'BEGIN DEALLOCATE ALL; END'")
    with pytest.raises(OperationalError) as raised, transaction.atomic(), pipelined() if at_once else nullcontext():
        run(MARKED, [1]).fetchone()
    assert is_away(raised.value), "the sender is asked to come again"
    assert connection_is_lost(raised.value)
    connection.close()
    assert [run(MARKED, [n]).fetchone() for n in range(10)] == [(n + 1,) for n in range(10)]
    assert kept_plans() == 0


def test_an_error_in_a_pipeline_is_djangos_and_rolls_all_of_it_back():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE written (n int)")
    with pytest.raises(DatabaseError) as raised, transaction.atomic(), pipelined():
        run("INSERT INTO written VALUES (%s)", [1])
        run("SELECT 1 / %s::int", [0])
        run("INSERT INTO written VALUES (%s)", [2])
    assert sqlstate(raised.value) == "22012"  # division_by_zero
    assert run("SELECT count(*) FROM written", []).fetchone() == (0,)


def test_what_is_sent_in_a_pipeline_runs_although_nobody_fetches_it():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE written (n int)")
    with transaction.atomic(), pipelined():
        run("INSERT INTO written VALUES (%s)", [1])
        second = run("SELECT count(*) FROM written", [])
        run("INSERT INTO written VALUES (%s)", [2])
    assert second.fetchone() == (1,)
    assert run("SELECT count(*) FROM written", []).fetchone() == (2,)


def test_a_statement_of_a_pipeline_sees_what_was_committed_while_the_one_before_it_waited_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE waited (n int)")
        cursor.execute("INSERT INTO waited VALUES (1)")
    held, waiting, done = threading.Event(), threading.Event(), threading.Event()

    def hold():
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("LOCK TABLE waited IN SHARE ROW EXCLUSIVE MODE")
                held.set()
                assert waiting.wait(30)
                cursor.execute("UPDATE waited SET n = 2")
        finally:
            connection.close()
            done.set()

    def watch():
        try:
            while not done.is_set():
                with connection.cursor() as cursor:
                    cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'waited'::regclass")
                    if cursor.fetchone()[0]:
                        waiting.set()
                        return
        finally:
            connection.close()

    threads = [threading.Thread(target=hold, daemon=True), threading.Thread(target=watch, daemon=True)]
    try:
        threads[0].start()
        assert held.wait(30)
        threads[1].start()
        with transaction.atomic(), pipelined():
            run("LOCK TABLE waited IN SHARE ROW EXCLUSIVE MODE", [])
            after = run("SELECT n FROM waited", [])
        assert after.fetchone() == (2,)
    finally:
        for thread in threads:
            thread.join(30)
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE waited")


def test_a_connection_that_is_gone_is_an_operational_error_in_a_pipeline_too():
    with pytest.raises(OperationalError), transaction.atomic(), pipelined():
        run("SELECT pg_terminate_backend(pg_backend_pid())", [])
        run("SELECT 1", []).fetchone()
    connection.close()


def test_what_goes_by_its_indexes_does_so_in_a_table_that_is_empty_yet_and_what_follows_does_not():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE small (n int PRIMARY KEY)")
    explain = "EXPLAIN SELECT * FROM small a JOIN small b USING (n) WHERE a.n = ANY(%s)"
    with transaction.atomic(), pipelined():
        with by_index():
            steered = run(explain, [[1, 2]])
        after = run(explain, [[1, 2]])
        setting = run("SHOW plan_cache_mode", [])
    plan, free = (" ".join(line for (line,) in cursor.fetchall()) for cursor in (steered, after))
    assert "Index" in plan
    assert not re.search("Seq Scan|Bitmap|Hash|Merge", plan), plan
    assert re.search("Seq Scan|Bitmap|Hash|Merge", free), free
    assert setting.fetchone() == ("auto",)
