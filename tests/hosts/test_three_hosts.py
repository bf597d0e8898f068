"""Workers on three hosts; one is cut off with a batch in its hands, and comes back."""

import signal
import socket
from typing import Any

import pytest

from jobs.messages import NewMessage, dumps
from jobs.queue import INSERT_MESSAGES
from tests.hosts.network import DATABASE_ADDRESS, Network
from tests.processes.cluster import Sandbox
from tests.processes.conftest import Processes, wait_until

pytestmark = pytest.mark.processes
EVENTS, KEYS = 400, 24
CUT_OFF = 2


def publish(database: Sandbox, first: int, count: int, **body: Any) -> list[str]:
    messages = [
        NewMessage("thing.happened", f"wine {number % KEYS}", {"seq": number, **body})
        for number in range(first, first + count)
    ]
    database.execute(INSERT_MESSAGES, {"messages": dumps([message.as_row() for message in messages]), "delay": 0})
    return [message.event_id for message in messages]


def sessions_of(database: Sandbox, host: int) -> list[int]:
    """The server's processes for workers of this host that are at work on a batch: rows gone, and not committed yet."""
    found = database.execute(
        "SELECT pid FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE client_addr = %s AND xact_start IS NOT NULL"
        " AND relation = 'jobs_delivery'::regclass AND mode = 'RowExclusiveLock'",
        [f"10.77.0.{10 + host}"],
    )
    return [pid for (pid,) in found]


def reaches(network: Network, host: int) -> bool:
    """Whether a new connection from there gets to the database."""
    with network.on(host):
        try:
            socket.create_connection((DATABASE_ADDRESS, 5432), timeout=0.5).close()
        except OSError:
            return False
    return True


def test_a_host_that_is_cut_off_in_the_middle_of_a_batch_doubles_nothing_and_holds_nobody_up(
    network: Network, database: Sandbox, environment: dict[str, Any], processes: Processes
) -> None:
    database.execute("DELETE FROM jobs_delivery")  # of tests before
    workers = {}
    for host in network.hosts:
        with network.on(host):
            workers[host] = processes.worker("strict", QUEUE_FAULTS="1", **environment)
    published = publish(database, 0, EVENTS, fault="slow")
    wait_until(lambda: sessions_of(database, CUT_OFF), what="the host has a batch in its hands")
    assert reaches(network, CUT_OFF)
    network.cut(CUT_OFF)
    assert not reaches(network, CUT_OFF)

    wait_until(lambda: len(database.effects()) >= EVENTS, seconds=120, what="the other hosts do all of the work")
    assert sorted(database.effects()) == sorted(published), "each effect once, none lost"
    assert workers[CUT_OFF].poll() is None

    network.heal(CUT_OFF)
    for host in set(network.hosts) - {CUT_OFF}:
        workers[host].send_signal(signal.SIGTERM)
        assert workers[host].wait(timeout=30) == 0
    published += publish(database, EVENTS, KEYS)
    wait_until(lambda: len(database.effects()) >= len(published), seconds=60, what="the healed host works alone")
    assert sorted(database.effects()) == sorted(published)

    for key in range(KEYS):
        in_order = database.execute("SELECT seq FROM test_effect WHERE key = %s ORDER BY id", [f"wine {key}"])
        assert in_order == sorted(in_order), f"wine {key}"
    assert database.execute("SELECT count(*) FROM jobs_deadletter") == [(0,)]
    assert database.execute("SELECT max(receive_count) <= 3 FROM test_effect") == [(True,)]


# In the middle of a round trip: the server has done the statement and waits for the end of what was sent, so no limit
# of a transaction that idles runs. A claim is there for some microseconds each time, or longer where the host is busy.
HOLD = """
import django, time
django.setup()
from django.conf import settings
from django.db import connection
settings.DATABASE_SESSION = dict(zip(settings.DATABASE_SESSION, (2, 1, 2, 4_000), strict=True))
connection.ensure_connection()
with connection.connection.pipeline():
    held = connection.connection.execute("SELECT pg_backend_pid() FROM jobs_subscription LIMIT 1 FOR UPDATE")
    print(held.fetchone()[0], flush=True)
    time.sleep(600)
"""


def test_what_a_host_had_locked_in_the_middle_of_a_round_trip_is_free_soon_after_it_is_gone(
    network: Network, database: Sandbox, environment: dict[str, Any], processes: Processes
) -> None:
    with network.on(CUT_OFF):
        holder = processes.start("-c", HOLD, **environment)
    try:
        wait_until(lambda: processes.log(holder).strip().isdigit(), what="it holds a row")
        pid = int(processes.log(holder))
        state = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = %s"
        wait_until(lambda: database.execute(state, [pid]) == [("active", "ClientRead")], what="it waits for the rest")
        network.cut(CUT_OFF)
        wait_until(lambda: not database.execute(state, [pid]), seconds=60, what="the server notices")
        assert holder.poll() is None
    finally:
        network.heal(CUT_OFF)
