"""Through PgBouncer in transaction mode: no LISTEN, no session state, and everything works by polling."""

import os
import pwd
import select
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.processes.cluster import Sandbox
from tests.processes.conftest import Processes, wait_until
from winecellar.embedded import Cluster

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
LEAK_SECONDS = 2  # after which the pooler takes a connection back from who does nothing with it
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed (Debian: apt-get install pgbouncer)"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    major = int(os.environ.get("WINECELLAR_PG_MAJOR", "18"))
    made = Sandbox(Cluster(f"postgres-pooled-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}", major))
    made.destroy()
    made.prepare()
    yield made
    made.destroy()


@pytest.fixture
def pooled(sandbox: Sandbox, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Sandbox, str]]:
    """An empty sandbox, and the DATABASE_URL of a pool before it, of two connections where nothing else is asked."""
    size = getattr(request, "param", 2)
    sandbox.execute("TRUNCATE test_effect, jobs_message, jobs_delivery, processed_messages")
    port = free_port()
    config = tmp_path / "pgbouncer.ini"
    config.write_text(
        f"[databases]\nsandbox = host={sandbox.cluster.socket_dir} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = {size}\nserver_reset_query_always = 0\n"
        f"idle_transaction_timeout = {LEAK_SECONDS}\n"
    )
    # PgBouncer refuses to be root, and must be whom the server's socket lets in.
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        pwd.getpwnam(user)
        for folder in (tmp_path, *tmp_path.parents):
            folder.chmod(folder.stat().st_mode | 0o011)
        config.chmod(0o644)
    assert PGBOUNCER is not None
    log = (tmp_path / "pgbouncer.log").open("wb")
    pooler = subprocess.Popen([PGBOUNCER, str(config)], user=user, cwd="/", stdout=log, stderr=log)
    url = f"postgres://postgres@127.0.0.1:{port}/sandbox"

    def answers() -> bool:
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=2) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.Error:
            assert pooler.poll() is None, (tmp_path / "pgbouncer.log").read_text()
            return False

    wait_until(answers, what="the pooler answers")
    yield sandbox, url
    pooler.terminate()
    pooler.wait()


@pytest.mark.parametrize(("listen", "prepares"), [("true", "true"), ("false", "false")])
def test_two_workers_behind_a_transaction_pooler_apply_each_message_once(
    pooled: tuple[Sandbox, str], processes: Processes, listen: str, prepares: str
) -> None:
    """Also where somebody forgot to say that there is one: what it cannot carry is found out and given up."""
    sandbox, _ = pooled
    start_workers(pooled, processes, WORKER_LISTEN=listen, PREPARED_STATEMENTS=prepares)
    acknowledged: list[str] = []
    for _ in range(4):
        acknowledged += sandbox.publish(250)
    assert_applied(sandbox, acknowledged)


@pytest.mark.parametrize("pooled", [1], indirect=True)
def test_a_pool_of_one_connection_that_somebody_leaks_for_a_while_comes_to_no_deadlock(
    pooled: tuple[Sandbox, str], processes: Processes
) -> None:
    """F12: nobody here holds a connection while they wait for another, so one is enough for all, if not fast."""
    sandbox, url = pooled
    start_workers(pooled, processes, WORKER_LISTEN="false", PREPARED_STATEMENTS="false")

    def publish(_: int) -> list[str]:
        return [event_id for _ in range(5) for event_id in sandbox.publish(25, url=url)]

    with ThreadPoolExecutor(8) as publishers:
        under_way = [publishers.submit(publish, number) for number in range(8)]
        with closing(psycopg.connect(url, prepare_threshold=None)) as leaker:
            leaker.execute("SELECT 1")  # a transaction that nobody ends
            assert select.select([leaker], [], [], 20)[0], "the pooler takes its connection back"
            with pytest.raises(psycopg.OperationalError):
                leaker.execute("SELECT 1")
        acknowledged = [event_id for each in under_way for event_id in each.result()]
    assert_applied(sandbox, acknowledged)


def start_workers(pooled: tuple[Sandbox, str], processes: Processes, **environment: str) -> None:
    sandbox, url = pooled
    for _ in range(2):
        given = {**sandbox.environment, "DATABASE_URL": url, **environment}
        process = processes.start("manage.py", "run_worker", "strict", **given)
        wait_until(lambda process=process: "worker.started" in processes.log(process), what="the worker starts")


def assert_applied(sandbox: Sandbox, acknowledged: list[str]) -> None:
    """All of it, once, in order."""
    wait_until(lambda: len(sandbox.effects()) >= len(acknowledged), seconds=60, what="all effects")
    assert sorted(sandbox.effects()) == sorted(acknowledged)
    for key in range(7):
        rows = sandbox.execute("SELECT event_id FROM test_effect WHERE key = %s ORDER BY id", [f"a{key}"])
        published = sandbox.execute("SELECT event_id FROM jobs_message WHERE key = %s ORDER BY id", [f"a{key}"])
        assert rows == published
