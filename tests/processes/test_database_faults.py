"""The database goes away in every way; workers resume by themselves, nothing acknowledged is lost, nothing doubled."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.chaos.network import Network
from tests.processes.cluster import Sandbox
from tests.processes.conftest import Processes, wait_until
from winecellar.embedded import Cluster

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    major = int(os.environ.get("WINECELLAR_PG_MAJOR", "18"))
    made = Sandbox(Cluster(f"postgres-sandbox-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}", major))
    made.destroy()
    made.prepare()
    yield made
    made.destroy()


@pytest.fixture(autouse=True)
def _clean(sandbox: Sandbox) -> None:
    sandbox.cluster.start()
    sandbox.execute("TRUNCATE test_effect, jobs_delivery, jobs_message, processed_messages, jobs_deadletter")


def worker(processes: Processes, sandbox: Sandbox, **environment: str) -> subprocess.Popen[bytes]:
    started = processes.start("manage.py", "run_worker", "strict", **{**sandbox.environment, **environment})
    wait_until(lambda: "worker.started" in processes.log(started), what="the worker starts")
    return started


def all_applied(sandbox: Sandbox, acknowledged: list[str]) -> Callable[[], bool]:
    return lambda: set(acknowledged) <= set(sandbox.effects())


def check_once(sandbox: Sandbox, acknowledged: list[str]) -> None:
    effects = sandbox.effects()
    assert len(effects) == len(set(effects)), "an effect happened twice"
    assert set(acknowledged) <= set(effects), "an acknowledged message was lost"
    assert sandbox.execute("SELECT count(*) FROM jobs_deadletter") == [(0,)]


@pytest.mark.parametrize("way", ["fast", "immediate", "kill -9"])
def test_workers_resume_after_postgres_was_stopped(sandbox: Sandbox, processes: Processes, way: str) -> None:
    worker(processes, sandbox)
    acknowledged: list[str] = []
    for _ in range(3):
        acknowledged += sandbox.publish(300)
        if way == "kill -9":
            sandbox.kill_all()
        else:
            sandbox.cluster.stop(way)
        sandbox.cluster.start()
        wait_until(all_applied(sandbox, acknowledged), seconds=40, what="the effects after the restart")
    check_once(sandbox, acknowledged)


def test_workers_wait_out_a_database_that_is_read_only(sandbox: Sandbox, processes: Processes) -> None:
    process = worker(processes, sandbox)
    sandbox.execute("ALTER DATABASE sandbox SET default_transaction_read_only = on")
    sandbox.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'sandbox'"
    )
    try:
        with sandbox.connect() as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(
                "INSERT INTO jobs_message (event_id, type, key, body) VALUES ('evt_1', 'thing.happened', 'a', '{}')"
            )
            connection.execute(
                "INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
                " SELECT s.id, 0, m.id, m.published_at, m.event_id, m.key FROM jobs_message m, jobs_subscription s"
                " WHERE s.name = 'strict'"
            )
        wait_until(lambda: "25006" in processes.log(process), what="the worker meets the read-only database")
        assert sandbox.effects() == []
    finally:
        with sandbox.connect() as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER DATABASE sandbox RESET default_transaction_read_only")
    wait_until(all_applied(sandbox, ["evt_1"]), what="the effect, once it may be written")
    check_once(sandbox, ["evt_1"])


def test_workers_wait_for_a_connection_slot_without_a_storm(sandbox: Sandbox, processes: Processes) -> None:
    process = worker(processes, sandbox)
    hoard: list[psycopg.Connection] = []
    with sandbox.connect() as connection:
        try:

            def is_refused() -> bool:
                # Again where the worker was quicker to come back than we were to take every slot.
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE pid <> pg_backend_pid() AND datname = 'sandbox'"
                )
                with pytest.raises(psycopg.OperationalError):
                    for _ in range(200):
                        hoard.append(psycopg.connect(sandbox.cluster.url("postgres")))
                return processes.log(process).count("lane.database_error") >= 3

            wait_until(is_refused, what="the worker is refused")
            assert processes.log(process).count("lane.database_error") < 60
        finally:
            for held in hoard:
                held.close()
    acknowledged = sandbox.publish(20)
    wait_until(all_applied(sandbox, acknowledged), what="the effects once there is room")
    check_once(sandbox, acknowledged)


def test_told_to_stop_during_a_commit_it_exits_with_zero_and_loses_nothing(
    sandbox: Sandbox, processes: Processes
) -> None:
    """A deferred trigger makes each COMMIT that writes an effect take half a second; SIGTERM arrives within it."""
    sandbox.execute(
        "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$"
    )
    sandbox.execute(
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON test_effect DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW WHEN (NEW.seq = 0) EXECUTE FUNCTION slow()"
    )
    try:
        process = worker(processes, sandbox)
        acknowledged = sandbox.publish(10)
        committing = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query = 'COMMIT'"
        wait_until(lambda: sandbox.execute(committing), what="a COMMIT in progress")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        held = sandbox.execute("SELECT count(*) FROM jobs_delivery WHERE lease_token IS NOT NULL")
        assert held == [(0,)]
        worker(processes, sandbox)
        wait_until(all_applied(sandbox, acknowledged), what="the rest")
        check_once(sandbox, acknowledged)
    finally:
        sandbox.execute("DROP TRIGGER slow ON test_effect")


def test_a_worker_in_a_black_hole_is_replaced_and_goes_on(sandbox: Sandbox, processes: Processes) -> None:
    """The connection is open and nothing ever comes back: no error, no timeout, only silence."""
    network = Network(f"{sandbox.cluster.socket_dir}/.s.PGSQL.5432")
    try:
        url = f"postgres://postgres@127.0.0.1:{network.port}/sandbox"
        process = worker(processes, sandbox, DATABASE_URL=url)
        acknowledged = sandbox.publish(50)
        wait_until(all_applied(sandbox, acknowledged), what="effects through the network")
        network.break_("black hole")
        acknowledged += sandbox.publish(50, key="b")
        wait_until(lambda: "handler.hung" in processes.log(process), what="the silence is noticed")
        network.heal()
        wait_until(all_applied(sandbox, acknowledged), seconds=60, what="its successor's effects")
        check_once(sandbox, acknowledged)
    finally:
        network.close()
