"""A Postgres of one's own, for tests that stop it, kill it or fill it; and the queue seen through plain psycopg."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from jobs.messages import NewMessage, dumps
from jobs.queue import INSERT_MESSAGES
from tests.processes.conftest import wait_until
from winecellar.embedded import ROOT, Cluster


class Sandbox:
    """A cluster with the queue's tables and one effect table; `url` is its DATABASE_URL."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.url = cluster.url("sandbox")
        self.environment = {"DATABASE_URL": self.url, "DJANGO_SETTINGS_MODULE": "tests.jobs.process_settings"}

    def prepare(self) -> None:
        self.cluster.start()
        self.cluster.ensure_database("sandbox")
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "-v", "0"],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            check=True,
        )
        self.execute(
            "CREATE TABLE IF NOT EXISTS test_effect"
            " (id bigint GENERATED ALWAYS AS IDENTITY, event_id text, key text, seq int, receive_count int)"
        )

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as connection:
            yield connection

    def execute(self, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            cursor = connection.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []

    def publish(self, count: int, key: str = "a", url: str = "") -> list[str]:
        """Publish as a producer does and return the acknowledged event ids. Raises what the database raises."""
        messages = [NewMessage("thing.happened", f"{key}{n % 7}", {"seq": n}) for n in range(count)]
        with psycopg.connect(url or self.url, autocommit=True, connect_timeout=5) as connection:
            connection.execute(
                INSERT_MESSAGES, {"messages": dumps([message.as_row() for message in messages]), "delay": 0}
            )
        return [message.event_id for message in messages]

    def effects(self) -> list[str]:
        """Event ids with an effect, in order; empty while the database is away."""
        try:
            return [row[0] for row in self.execute("SELECT event_id FROM test_effect ORDER BY id")]
        except psycopg.Error:
            return []

    def kill_all(self) -> None:
        """SIGKILL the postmaster and every child at once, as a power cut would."""
        postmaster = int((self.cluster.data / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        pids = [postmaster, *map(int, children)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), what="they are gone")

    def destroy(self) -> None:
        self.cluster.stop("immediate")
        shutil.rmtree(self.cluster.data, ignore_errors=True)
