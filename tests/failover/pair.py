"""A primary and its standby, real servers both, of which the primary may be lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import psycopg

from tests.chaos.cluster import ChaosCluster, cluster
from tests.processes.conftest import wait_until
from tests.replicas.standby import AT_LEAST_THE_PRIMARYS, Standby
from winecellar.embedded import ROOT

DATABASE = "sandbox"
NAME = "standby"
FOLLOWING = "SELECT sync_state FROM pg_stat_replication WHERE application_name = %s AND state = 'streaming'"


class Pair:
    """`url` names both; `standby` takes the primary's place when it is promoted."""

    def __init__(self, *, synchronous: bool) -> None:
        whose = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self.primary: ChaosCluster = cluster(f"-primary-{whose}")
        self.primary.destroy()
        self.primary.start()
        self.primary.ensure_database(DATABASE)
        hosts = ",".join(quote(str(each), safe="") for each in (self.primary.socket_dir, self._standby_folder(whose)))
        self.url = f"postgres://postgres@/{DATABASE}?host={hosts}"
        self.environment = {"DATABASE_URL": self.url, "DJANGO_SETTINGS_MODULE": "tests.failover.settings"}
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "-v", "0"],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            check=True,
        )
        self.execute(
            "CREATE TABLE test_effect"
            " (id bigint GENERATED ALWAYS AS IDENTITY, event_id text, key text, seq int, receive_count int)"
        )
        self.execute("CREATE TABLE chaos_key (key text PRIMARY KEY, seq bigint NOT NULL DEFAULT 0)")
        self.standby = self._follow(whose)
        wait_until(lambda: self._on_primary(FOLLOWING, NAME), what="the standby follows")
        if synchronous:
            self.primary = replace(self.primary, changed=(("synchronous_standby_names", f"'{NAME}'"),))
            self.primary._write_settings()
            self.primary._pg_ctl("reload")
            wait_until(lambda: self._on_primary(FOLLOWING, NAME) == [("sync",)], what="it is synchronous")

    def _standby_folder(self, whose: str) -> Any:
        return cluster(f"-standby-{whose}").socket_dir

    def _follow(self, whose: str) -> Standby:
        limits = self._on_primary(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", list(AT_LEAST_THE_PRIMARYS)
        )
        source = f"host={self.primary.socket_dir} user=postgres dbname={DATABASE} application_name={NAME}"
        made = Standby(
            name=cluster(f"-standby-{whose}").name,
            major=self.primary.major,
            source=source,
            limits=tuple(limits),
            database=DATABASE,
        )
        made.destroy()
        made.start()
        return made

    def _on_primary(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.primary.url(DATABASE), autocommit=True) as session:
            return session.execute(sql, parameters).fetchall()

    def connect(self) -> psycopg.Connection:
        """To the one that takes writes, whichever it is; as the applications find it."""
        return psycopg.connect(f"{self.url}&target_session_attrs=read-write", autocommit=True, connect_timeout=2)

    def execute(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self.connect() as session:
            cursor = session.execute(sql, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def fall_behind(self, seconds: float) -> None:
        """The standby takes nothing for a while, as over a network that is slower than the load."""
        (pid,) = self.standby.ask("SELECT ARRAY[pid] FROM pg_stat_wal_receiver")
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
            self.lose_primary()
        finally:
            os.kill(pid, signal.SIGCONT)

    def lose_primary(self) -> None:
        """With all its processes, in the middle of whatever it does; it never comes back."""
        self.primary.kill_all()

    def promote(self) -> None:
        self.standby.promote()

    def destroy(self) -> None:
        if self.standby.data.exists() and (self.standby.data / "postmaster.pid").exists():
            self.standby.send_signal(signal.SIGCONT)
        self.standby.destroy()
        self.primary.destroy()
