"""Row 103: while the database cannot take prices the feed says 503 and when to come again, and nothing about why."""

from contextlib import contextmanager

import psycopg
import pytest
from django.db import DataError, OperationalError, connection

from tests.feeds.conftest import nothing_written, observation, refusal

pytestmark = pytest.mark.django_db(transaction=True)


def unavailable(response):
    assert refusal(response) == (503, "unavailable", None)
    assert response["Retry-After"] == "5"
    assert response.json()["error"]["message"] == "We cannot take prices at this moment. Send the same request again."


def test_a_database_that_is_down(feed, wine, monkeypatch):
    connection.close()
    with monkeypatch.context() as patch:
        options = {**connection.settings_dict["OPTIONS"], "host": "/nowhere"}
        patch.setitem(connection.settings_dict, "OPTIONS", options)
        patch.setitem(connection.settings_dict, "HOST", "/nowhere")
        unavailable(feed.post(observation()))
        connection.close()
    assert nothing_written()
    assert feed.post(observation()).status_code == 202


def test_a_database_that_is_read_only(feed, wine):
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    try:
        unavailable(feed.post(observation()))
    finally:
        connection.close()
    assert nothing_written()


@contextmanager
def failing(error, *, at, alone=False):
    """The statement that begins with `at` fails with a server's error, after the server has run it. One that is a
    transaction `alone` has then not been run."""

    def wrap(execute, sql, params, many, context):
        fails = sql.lstrip().startswith(at)
        result = None if fails and alone else execute(sql, params, many, context)
        if fails:
            raise error
        return result

    with connection.execute_wrapper(wrap):
        yield


def server_error(code):
    failure = OperationalError("could not extend file /secret/path")
    failure.__cause__ = psycopg.errors.lookup(code)("could not extend file /secret/path")
    return failure


CODES = ["53100", "53200", "53300", "57P01", "57014", "08006", "58030", "40001", "40P01", "25006"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("at", ["WITH found", "WITH patience"])
def test_disk_full_shutdown_deadlock_and_their_like_at_any_statement_of_a_single_price(feed, wine, code, at):
    refused_whole(feed, observation(), failing(server_error(code), at=at, alone=True))


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("at", ["WITH patience", "INSERT INTO pricing_offer", "UPDATE pricing_feedanswer"])
def test_disk_full_shutdown_deadlock_and_their_like_at_any_statement_of_a_batch(feed, wine, code, at):
    refused_whole(feed, {"observations": [observation(), observation()]}, failing(server_error(code), at=at))


def refused_whole(feed, body, fault):
    with fault:
        response = feed.post(body, Idempotency_Key="d-1")
    unavailable(response)
    assert b"secret" not in response.content
    assert nothing_written()
    assert feed.post(body, Idempotency_Key="d-1").json()["duplicate"] is False


def test_a_session_that_the_server_ended_is_a_503_and_the_next_request_works(feed, wine):
    def wrap(execute, sql, params, many, context):
        if "FOR NO KEY UPDATE" in sql:
            with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrap):
        unavailable(feed.post(observation()))
    assert nothing_written()
    assert feed.post(observation()).status_code == 202


def test_an_error_that_is_our_own_fault_is_not_called_the_databases(feed, wine):
    with pytest.raises(DataError), failing(DataError("22003"), at="WITH patience", alone=True):
        feed.post(observation())
    assert nothing_written()
