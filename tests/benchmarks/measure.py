"""The four measurements that all systems go through alike: filling, draining, waking, adding one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import psycopg

from tests.benchmarks import server
from tests.benchmarks.process import BenchError, Workers, call, database_of, server_cpu_seconds, workers
from tests.benchmarks.systems import System

SETTLED_SECONDS = 1.0  # the number of workers waiting at the gate has not changed for so long
START_SECONDS = 60.0
WARM_UP = 20


@dataclass(frozen=True)
class Drained:
    """`rate` is jobs per second from the gate's opening until the database says that none is left."""

    count: int
    seconds: float
    rate: float
    cpu_us: float  # processor time of the worker processes, per job
    server_cpu_us: float  # and of the database server, all its processes
    wal_bytes: float  # per job
    commits: float  # per job
    memory_mb: tuple[float, float]  # resident, when a tenth was done and at the end

    def record(self) -> dict[str, Any]:
        return asdict(self)


def prepare(system: System) -> None:
    """Make the system's empty database, from which `fresh` copies."""
    server.create(database_of(system))
    call(system, "setup")
    # A worker's first start may write something: pools of queues, registrations, migrations of its own.
    server.create(f"{database_of(system)}-empty", template=database_of(system))


def fresh(system: System) -> None:
    server.create(database_of(system), template=f"{database_of(system)}-empty")


def fill(system: System, count: int, kind: str = "noop", **environment: str) -> float:
    """Add that many jobs with the bulk call; returns jobs per second."""
    return count / float(call(system, "fill", count, kind=kind, **environment)["seconds"])


def drain(
    system: System, count: int, processes: int, kind: str = "noop", *, limit: float = 120.0, **environment: str
) -> Drained:
    """Handle the `count` jobs that are there already.

    The workers are started first: imported, connected and waiting in their first claim, for the driver holds their
    table locked. The clock starts when it lets go, so what is measured is the same for all.
    """
    database = database_of(system)
    server.execute("VACUUM ANALYZE", database)
    server.execute("CHECKPOINT")
    with (
        server.connect(database) as watcher,
        _gate(system) as gate,
        workers(system, processes, kind, **environment) as started,
    ):
        _wait_at_gate(started, watcher, processes, system)
        commits, wal = _counters(database)
        cpu, server_cpu = started.cpu_seconds(), server_cpu_seconds()
        began = time.perf_counter()
        gate.rollback()
        early = _wait_until_seen(started, count, began + limit)
        ended = _wait_until_empty(system, watcher, count, began + limit)
        seconds = ended - began
        cpu, server_cpu = started.cpu_seconds() - cpu, server_cpu_seconds() - server_cpu
        memory = (early, started.memory_mb())
        wal = _counters(database)[1] - wal
    time.sleep(0.2)  # the backends' last counts arrive when they end
    commits = _counters(database)[0] - commits
    return Drained(
        count,
        seconds,
        rate=count / seconds,
        cpu_us=1e6 * cpu / count,
        server_cpu_us=1e6 * server_cpu / count,
        wal_bytes=wal / count,
        commits=commits / count,
        memory_mb=memory,
    )


def latency(system: System, count: int = 300, rate: float = 50.0, **environment: str) -> dict[str, float]:
    """Milliseconds from an add's commit to its handler's start in an idle worker: p50, p99, the longest."""
    with workers(system, 1, BENCH_TIMES="1", **environment) as started:
        call(system, "add", 1, **environment)
        deadline = time.monotonic() + START_SECONDS
        while not started.seen():
            started.check()
            if time.monotonic() > deadline:
                raise BenchError("an idle worker did not take its first job")
            time.sleep(0.05)
        time.sleep(1.0)
        committed = call(system, "pace", count + WARM_UP, rate, **environment)["committed"]
        deadline = time.monotonic() + 20.0
        while started.seen() < count + WARM_UP + 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.1)
        times = started.times()
    waits = sorted((times[i] - moment) * 1000 for i, moment in committed if i >= WARM_UP and i in times)
    if len(waits) < count:
        raise BenchError(f"only {len(waits)} of {count} jobs were handled")
    return {"p50": waits[len(waits) // 2], "p99": waits[int(len(waits) * 0.99)], "longest": waits[-1]}


def add_one_by_one(system: System, count: int, kind: str = "noop", **environment: str) -> float:
    """Add jobs on one connection, each in a transaction of its own; returns jobs per second."""
    return count / float(call(system, "add", count, kind=kind, **environment)["seconds"])


@contextmanager
def held_snapshot(system: System) -> Iterator[None]:
    """Another session with a REPEATABLE READ snapshot, open all the while, as a long report would hold it."""
    with psycopg.connect(server.url(database_of(system))) as session:
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        session.execute("SELECT count(*) FROM pg_class")
        yield


@contextmanager
def _gate(system: System) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.url(database_of(system))) as session:
        session.execute(f"LOCK TABLE {system.gate} IN ACCESS EXCLUSIVE MODE")
        yield session


WAITING = """
SELECT count(DISTINCT pid) FROM pg_locks
WHERE NOT granted AND locktype = 'relation' AND relation = ANY(%s)
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# Found in the catalogue by name: a cast to regclass would wait for the lock itself.
GATE = """
WITH RECURSIVE gate AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
    UNION ALL SELECT i.inhrelid FROM gate JOIN pg_inherits i ON i.inhparent = gate.oid
)
SELECT array_agg(oid) FROM gate
"""


def _wait_at_gate(started: Workers, watcher: psycopg.Connection, processes: int, system: System) -> None:
    deadline = time.monotonic() + START_SECONDS
    waiting, since = -1, time.monotonic()
    schema, _, table = system.gate.rpartition(".")
    (relations,) = watcher.execute(GATE, [schema or "public", table]).fetchone() or (None,)
    while not (waiting >= processes and time.monotonic() - since >= SETTLED_SECONDS):
        started.check()
        if time.monotonic() > deadline:
            raise BenchError(f"only {waiting} workers came to their first claim")
        row = watcher.execute(WAITING, [relations]).fetchone()
        assert row
        if row[0] != waiting:
            waiting, since = row[0], time.monotonic()
        time.sleep(0.05)


def _wait_until_seen(started: Workers, count: int, deadline: float) -> float:
    """Returns the resident memory when a tenth had been seen."""
    early = 0.0
    while (seen := started.seen()) < count:
        if not early and seen >= count / 10:
            early = started.memory_mb()
        started.check()
        if time.perf_counter() > deadline:
            raise BenchError(f"{seen} of {count} jobs handled when the time was up")
        time.sleep(0.01)
    return early or started.memory_mb()


def _wait_until_empty(system: System, watcher: psycopg.Connection, count: int, deadline: float) -> float:
    """Returns when it was asked that first said so: looking through the dead rows is not the worker's time."""
    sql = system.left.format(count=count)
    while True:
        asked = time.perf_counter()
        row = watcher.execute(sql).fetchone()
        assert row
        if not row[0]:
            return asked
        if asked > deadline:
            raise BenchError("handled, but not finished, when the time was up")
        time.sleep(0.005)


def _counters(database: str) -> tuple[float, float]:
    """Commits in the database so far, and the server's WAL position in bytes."""
    sql = f"SELECT xact_commit, pg_current_wal_lsn() - '0/0' FROM pg_stat_database WHERE datname = '{database}'"
    commits, wal = server.execute(sql)[0]
    return float(commits), float(wal)


def middle(values: list[float]) -> float:
    return float(median(values))
