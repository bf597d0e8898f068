"""The one PostgreSQL that everybody is measured on: the embedded one with stock settings, in a folder of its own.

Nobody is helped by tuning: the settings are initdb's (fsync, full_page_writes and synchronous_commit on, 128 MB of
shared buffers, jit on), not those that our own embedded server gets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from winecellar.embedded import SUPERUSER, Cluster

SHOWN = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "autovacuum", "jit")


class StockCluster(Cluster):
    def _write_settings(self) -> None:
        """Leave everything as initdb wrote it."""


# The smoke test's runs beside a bench, so it has a server of its own, as all tests have.
CLUSTER = StockCluster(name=f"bench/{os.environ.get('WINECELLAR_PG_NAME', 'postgres')}")


def url(database: str) -> str:
    """In the form that all clients read, libpq's, asyncpg's and node's."""
    return f"postgresql://{SUPERUSER}@/{database}?host={CLUSTER.socket_dir}"


def connect(database: str = "postgres", **options: Any) -> psycopg.Connection:
    return psycopg.connect(url(database), autocommit=True, **options)


def execute(sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
    with connect(database) as session:
        cursor = session.execute(sql)
        return cursor.fetchall() if cursor.description else []


def drop(database: str) -> None:
    execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


def create(database: str, template: str = "template1") -> None:
    """An empty database, or a copy of another; one of that name goes first."""
    drop(database)
    execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}"')


@contextmanager
def running() -> Iterator[None]:
    started = CLUSTER.start()
    try:
        yield
    finally:
        if started:
            CLUSTER.stop()


def described() -> str:
    (version,) = execute("SHOW server_version")[0]
    shown = ", ".join(f"{name} {execute(f'SHOW {name}')[0][0]}" for name in SHOWN)
    return f"PostgreSQL {version}, stock settings ({shown}), Unix socket"
