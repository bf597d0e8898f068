"""Through PgBouncer in transaction mode: no LISTEN, no session state, and everything works by polling."""

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.processes.cluster import Sandbox
from tests.processes.conftest import Processes, wait_until
from winecellar.embedded import Cluster

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed (Debian: apt-get install pgbouncer)"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[tuple[Sandbox, str]]:
    """A sandbox, and the DATABASE_URL of a two-connection pool in front of it."""
    major = int(os.environ.get("WINECELLAR_PG_MAJOR", "18"))
    sandbox = Sandbox(Cluster(f"postgres-pooled-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}", major))
    sandbox.destroy()
    sandbox.prepare()
    port = free_port()
    config = tmp_path / "pgbouncer.ini"
    config.write_text(
        f"[databases]\nsandbox = host={sandbox.cluster.socket_dir} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 2\nserver_reset_query_always = 0\n"
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
    sandbox.destroy()


@pytest.mark.parametrize(("listen", "prepares"), [("true", "true"), ("false", "false")])
def test_two_workers_behind_a_transaction_pooler_apply_each_message_once(
    pooled: tuple[Sandbox, str], processes: Processes, listen: str, prepares: str
) -> None:
    """Also where somebody forgot to say that there is one: what it cannot carry is found out and given up."""
    sandbox, url = pooled
    for _ in range(2):
        process = processes.start(
            "manage.py",
            "run_worker",
            "strict",
            **{**sandbox.environment, "DATABASE_URL": url, "WORKER_LISTEN": listen, "WORKER_PREPARES": prepares},
        )
        wait_until(lambda process=process: "worker.started" in processes.log(process), what="the worker starts")
    acknowledged: list[str] = []
    for _ in range(4):
        acknowledged += sandbox.publish(250)
    wait_until(lambda: len(sandbox.effects()) >= 1_000, seconds=60, what="all effects")
    effects = sandbox.effects()
    assert sorted(effects) == sorted(acknowledged)
    for key in range(7):
        rows = sandbox.execute("SELECT event_id FROM test_effect WHERE key = %s ORDER BY id", [f"a{key}"])
        published = sandbox.execute("SELECT event_id FROM jobs_message WHERE key = %s ORDER BY id", [f"a{key}"])
        assert rows == published
