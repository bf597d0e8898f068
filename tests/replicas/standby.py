"""A real streaming replica of the tests' server, made by Postgres's own pg_basebackup, with a delay that can be set.

The server may be the embedded one or another that DATABASE_URL names; where no copy can be made of it, the tests that
need one are skipped, and say why.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection
from psycopg.conninfo import make_conninfo

from tests.processes.conftest import wait_until
from winecellar.embedded import FOLDER_IN_WHEEL, SETTINGS, Cluster

DEBIAN = Path("/usr/lib/postgresql")
# A standby must allow at least as much as its primary, or it does not start.
AT_LEAST_THE_PRIMARYS = (
    "max_connections",
    "max_worker_processes",
    "max_wal_senders",
    "max_prepared_transactions",
    "max_locks_per_transaction",
)


class NoCopyPossibleError(Exception):
    """Why, for whoever reads the skipped tests."""


@dataclass(frozen=True)
class Standby(Cluster):
    """A cluster that is a copy; `source` is the primary's conninfo, `limits` what its settings must reach."""

    source: str = ""
    limits: tuple[tuple[str, str], ...] = ()
    database: str = ""

    @property
    def bin(self) -> Path:
        if self.major in FOLDER_IN_WHEEL:
            return super().bin
        return DEBIAN / str(self.major) / "bin"

    def _initialise(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        self._prepare_for_other_user(self.data)
        # As the tests wait for it, the checkpoint is not spread over minutes.
        self._run("pg_basebackup", "-D", self.data, "-X", "stream", "-c", "fast", "-d", self.source)
        # The primary's own: with its socket's lock the copy would take itself for running already.
        for leftover in (*self.data.glob(".s.PGSQL.*"), self.log):
            leftover.unlink(missing_ok=True)
        # Where a distribution keeps these elsewhere, the copy has none.
        (self.data / "postgresql.conf").write_text("")
        (self.data / "pg_hba.conf").write_text("local all all trust\n")
        (self.data / "standby.signal").touch()
        for name in ("postgresql.conf", "pg_hba.conf", "standby.signal"):
            (self.data / name).chmod(0o644)

    def _write_settings(self, delay: str = "0") -> None:
        quoted = self.source.replace("'", "''")
        own = {
            **{name: value for name, value in SETTINGS.items() if name not in dict(self.limits)},
            **dict(self.limits),
            "shared_buffers": "'32MB'",
            "primary_conninfo": f"'{quoted}'",
            "recovery_min_apply_delay": f"'{delay}'",
            "wal_receiver_status_interval": "'1s'",
            "max_standby_streaming_delay": "'2s'",  # who reads here must not hold the tests up
        }
        path = self.data / "postgresql.auto.conf"
        path.write_text("".join(f"{name} = {value}\n" for name, value in own.items()))
        path.chmod(0o644)

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.url(self.database), autocommit=True, connect_timeout=5) as there:
            yield there

    def ask(self, sql: str) -> Any:
        with self.connect() as there:
            row = there.execute(sql).fetchone()
            return row[0] if row else None

    def delay(self, how_long: str) -> None:
        """From now on commits are replayed so much later."""
        self._write_settings(how_long)
        self._pg_ctl("reload")
        wait_until(lambda: self.ask("SHOW recovery_min_apply_delay") == how_long, what="the delay is set")

    def catch_up(self) -> None:
        """Replay all that the primary has committed until now."""
        self.delay("0")
        with connection.cursor() as cursor:
            # Not the insert position: it may lie behind the header of a page that nobody has begun.
            cursor.execute("SELECT pg_current_wal_flush_lsn()")
            (position,) = cursor.fetchone()
        wait_until(lambda: self.ask(f"SELECT pg_last_wal_replay_lsn() >= '{position}'"), what="the replica has all")

    def promote(self) -> None:
        self._pg_ctl("promote")

    def pids(self) -> list[int]:
        postmaster = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        return [postmaster, *map(int, Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split())]

    def send_signal(self, number: int) -> None:
        """To the server and all its processes."""
        pids = self.pids()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGKILL:
            wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), what="they are gone")

    def destroy(self) -> None:
        if self.data.exists():
            self.stop("immediate")
            shutil.rmtree(self.data, ignore_errors=True)


def make_standby(name: str) -> Standby:
    """A running replica of the server that the tests use. Raises NoCopyPossibleError."""
    parameters = {key: value for key, value in connection.get_connection_params().items() if key in WHERE}
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        major = int(cursor.fetchone()[0]) // 10_000
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(AT_LEAST_THE_PRIMARYS)])
        limits = tuple(cursor.fetchall())
    database = str(parameters.pop("dbname"))
    standby = Standby(name=name, major=major, source=make_conninfo("", **parameters), limits=limits, database=database)
    if not (standby.bin / "pg_basebackup").exists():
        raise NoCopyPossibleError(f"no pg_basebackup of Postgres {major} here")
    standby.destroy()
    try:
        standby.start()
    except RuntimeError as error:
        standby.destroy()
        raise NoCopyPossibleError(str(error)) from error
    return standby


WHERE = {"host", "port", "user", "password", "dbname"}
