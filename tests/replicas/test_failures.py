"""A replica that is dead, frozen, promoted, too old or odd costs no page: the primary answers."""

import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.test import Client

from alerts import views
from alerts.models import Alert
from pricing.models import Wine
from tests.feeds.server import Server
from tests.processes.conftest import wait_until
from tests.replicas.conftest import ALIAS, Look
from tests.replicas.standby import Standby
from winecellar.replicas import middleware
from winecellar.replicas.standby import Standby as Watched

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True, databases="__all__")]


@pytest.fixture(autouse=True)
def _at_once(settings: Any) -> None:
    settings.REPLICA_RETRY_AFTER = timedelta(hours=1)  # nothing is tried again within a test, unless it says so


def why_not() -> str:
    (only,) = middleware.standbys()
    return only.standing().why_not


def test_a_replica_that_is_down_is_tried_once_and_then_left_alone(
    replica: Standby, stranger: Client, look: Look, settings: Any
) -> None:
    assert look(stranger, "/wines/wn_4417").on_replica
    replica.send_signal(signal.SIGKILL)
    assert "Ch. Montrose" in look(stranger, "/wines/wn_4417").text
    assert look(stranger, "/wines/wn_4417").how_far == 0, "the next page does not even ask"

    replica.start()
    (only,) = middleware.standbys()
    only._clock = lambda: time.monotonic() + settings.REPLICA_RETRY_AFTER.total_seconds()

    def is_used() -> bool:
        replica.catch_up()  # others write on the same server
        return bool(look(stranger, "/wines/wn_4417").on_replica)

    wait_until(is_used, seconds=30, what="it is used again once it is back")
    assert why_not() == ""


def test_a_replica_that_was_restarted_is_met_with_a_new_connection(
    replica: Standby, stranger: Client, look: Look
) -> None:
    assert look(stranger, "/wines/wn_4417").on_replica
    replica.stop()
    replica.start()
    assert look(stranger, "/wines/wn_4417").on_replica


@pytest.mark.parametrize("visitor", ["as_alice", "stranger"])
def test_a_replica_that_dies_in_the_middle_of_a_page_does_not_show(
    replica: Standby, look: Look, visitor: str, request: pytest.FixtureRequest
) -> None:
    client: Client = request.getfixturevalue(visitor)
    assert look(client, "/wines/wn_4417").on_replica
    done: list[str] = []

    def kill_at_the_second_statement() -> None:
        done.append("statement")
        if len(done) == 2:
            replica.send_signal(signal.SIGKILL)

    page = look(client, "/wines/wn_4417", kill_at_the_second_statement)
    assert len(done) == 2, "it was in the middle"
    assert "$160.00" in page.text
    assert any('"pricing_offer"' in sql for sql in page.on_primary)


def test_a_replica_that_lacks_what_the_code_asks_for_does_not_show(
    replica: Standby, stranger: Client, look: Look
) -> None:
    """A migration that it has not replayed yet."""

    def ask_for_a_column_that_is_not_there() -> None:
        with connections[ALIAS].wrap_database_errors:
            connections[ALIAS].connection.execute("SELECT not_yet FROM pricing_wine")

    page = look(stranger, "/wines/wn_4417", ask_for_a_column_that_is_not_there)
    assert "Ch. Montrose" in page.text
    assert why_not() == "ProgrammingError"


def test_an_error_of_the_primary_is_not_held_against_the_replica(
    replica: Standby, as_alice: Client, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    def primary_fails(**_: Any) -> Any:
        list(Alert.objects.all())
        raise OperationalError("of the primary")

    monkeypatch.setattr(views, "list_alerts", primary_fails)
    assert as_alice.get("/alerts").status_code == 503
    assert why_not() == ""


def test_a_frozen_replica_is_not_waited_for(replica: Standby, stranger: Client, look: Look, settings: Any) -> None:
    assert look(stranger, "/wines/wn_4417").on_replica
    settings.REPLICA_ANSWER_TIME = timedelta(seconds=0.2)
    replica.send_signal(signal.SIGSTOP)
    try:
        page = look(stranger, "/wines/wn_4417")
    finally:
        replica.send_signal(signal.SIGCONT)
    assert "Ch. Montrose" in page.text
    assert not page.on_replica
    assert why_not() == "NoAnswerInTimeError"


@pytest.fixture
def paused(replica: Standby) -> Iterator[Standby]:
    """It stays connected and receives all, and replays nothing, as one that is cut off from its source."""
    replica.ask("SELECT pg_wal_replay_pause()")
    yield replica
    replica.ask("SELECT pg_wal_replay_resume()")


def test_a_replica_that_stands_still_is_left_when_it_is_too_old(
    paused: Standby, stranger: Client, look: Look, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Wine.objects.filter(pk="wn_4417").update(name="Ch. Brand New")
    now = [0.0]
    watched = Watched(ALIAS, clock=lambda: now[0])
    monkeypatch.setattr(middleware, "standbys", cache(lambda: (watched,)))
    settings.REPLICA_MAX_LAG = timedelta(seconds=30)
    watched._age.mark(0, 0.0)  # it had replayed all there was at this moment
    now[0] = 29.0
    assert "Ch. Brand New" not in look(stranger, "/wines/wn_4417").text
    now[0] = 31.0
    assert "Ch. Brand New" in look(stranger, "/wines/wn_4417").text
    now[0] = 60.0  # the mark of second 29 is known not to be replayed
    assert "Ch. Brand New" in look(stranger, "/wines/wn_4417").text
    assert why_not() == "lags"


def test_the_web_server_takes_its_replicas_from_the_environment(replica: Standby, tmp_path: Path) -> None:
    """gunicorn with its threads, the replica under load when it is killed: no page fails."""
    server = Server(tmp_path / "web.log", DATABASE_REPLICA_URLS=replica.url(replica.database), LOG_LEVEL="INFO")
    statuses: list[int] = []
    ending = threading.Event()

    def browse() -> None:
        while not ending.is_set():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/wines/wn_4417", timeout=30) as answer:
                    statuses.append(answer.status if b"$160.00" in answer.read() else 0)
            except OSError as error:  # an HTTPError too
                statuses.append(getattr(error, "code", -1))

    threads = [threading.Thread(target=browse) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        there = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pricing_wine%' AND pid <> pg_backend_pid()"
        wait_until(lambda: replica.ask(there), what="pages are read from the replica")
        replica.send_signal(signal.SIGKILL)
        wait_until(lambda: "replica.left" in server.log.read_text(), what="it is noticed")
        sofar = len(statuses)
        wait_until(lambda: len(statuses) > sofar + 8, what="pages go on")
    finally:
        ending.set()
        for thread in threads:
            thread.join()
        server.stop()
    assert set(statuses) == {200}
