"""Waking idle workers: NOTIFY after commit, coalesced, on a connection of its own; LISTEN in each worker.

Lossy by design and never needed for correctness: polling finds everything. NOTIFY inside the transaction would
serialise all commits, so producers only hand the partitions to a thread that says them a moment later.
"""

from __future__ import annotations

import atexit
import os
import random
import select
import threading
import time
from collections.abc import Callable, Iterable

import psycopg
import structlog
from django.conf import settings
from django.db import connection

from jobs.queue import Partition

log = structlog.get_logger(__name__)
CHANNEL = "jobs_ready"
# One round trip, and no wait for the disk: what is lost in a crash is found by polling. The setting is local to the
# transaction, since a pooler may hand the session to somebody else. A payload is digits, colons and commas.
NOTIFY = f"BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}, '{{payload}}'; COMMIT"
LONGEST_PAYLOAD = 7_000  # the server takes 8,000 bytes
RECONNECT_SECONDS = (0.1, 5.0)  # first wait and longest wait, doubled and jittered between


class _Announcer:
    """One thread per process, started at the first announcement after a fork."""

    def __init__(self) -> None:
        self._pending: set[Partition] = set()
        self._calls = 0  # since it was last said
        self._lock = threading.Condition()
        self._saying = False
        self._pid = 0

    def announce(self, partitions: Iterable[Partition]) -> None:
        with self._lock:
            self._pending.update(partitions)
            self._calls += 1
            if self._pid != os.getpid():
                self._pid = os.getpid()
                threading.Thread(target=self._run, name="announcer", daemon=True).start()
            self._lock.notify_all()

    def flush(self, seconds: float) -> None:
        """Wait, but no longer than this, until all that was announced in this process has been said."""
        with self._lock:
            if self._pid == os.getpid():
                self._lock.wait_for(lambda: not self._pending and not self._saying, timeout=seconds)

    def _run(self) -> None:
        session: psycopg.Connection | None = None
        shortest, longest = settings.NOTIFY_INTERVAL.total_seconds(), settings.NOTIFY_INTERVAL_LONGEST.total_seconds()
        pause, said_at = shortest, float("-inf")
        while True:
            with self._lock:
                self._lock.wait_for(lambda: bool(self._pending))
                # So many come that whoever listens is awake already.
                in_a_stream = time.monotonic() - said_at < 2 * shortest * self._calls
                pause = min(2 * pause, longest) if in_a_stream else shortest
                said_at, self._calls = time.monotonic(), 0
                partitions, self._pending = self._pending, set()
                self._saying = True
            try:
                session = session or _connect()
                for payload in _payloads(partitions):
                    session.execute(NOTIFY.format(payload=payload).encode())
            except psycopg.Error as error:
                # Lost on purpose: the workers' next poll finds the work.
                log.info("wakeup.not_announced", error=type(error).__name__)
                if session is not None:
                    session.close()
                session = None
            with self._lock:
                self._saying = False
                self._lock.notify_all()
            time.sleep(pause)


_announcer = _Announcer()
FAREWELL_SECONDS = 0.5  # a command that publishes and ends may wait so long to have it said
atexit.register(lambda: _announcer.flush(FAREWELL_SECONDS))


def announce(partitions: Iterable[Partition]) -> None:
    """Tell idle workers, soon, that these partitions have work. Call it after the commit."""
    if settings.WORKER_LISTEN:
        _announcer.announce(partitions)


class Listener(threading.Thread):
    """Calls `on_ready` with the partitions announced by any process; reconnects by itself until closed."""

    def __init__(self, on_ready: Callable[[set[Partition]], None]) -> None:
        super().__init__(name="listener", daemon=True)
        self._on_ready = on_ready
        self._closed = threading.Event()
        self._stop_reader, self._stop_writer = os.pipe()
        self.connected = threading.Event()

    def run(self) -> None:
        wait = RECONNECT_SECONDS[0]
        while not self._closed.is_set():
            try:
                with _connect() as session:
                    session.execute(f"LISTEN {CHANNEL}")
                    self.connected.set()
                    wait = RECONNECT_SECONDS[0]
                    self._listen(session)
            except psycopg.Error as error:
                log.warning("listener.disconnected", error=type(error).__name__)
            self.connected.clear()
            self._closed.wait(random.uniform(wait / 2, wait))  # noqa: S311
            wait = min(2 * wait, RECONNECT_SECONDS[1])

    def close(self) -> None:
        self._closed.set()
        os.write(self._stop_writer, b".")
        self.join(timeout=5)

    def _listen(self, session: psycopg.Connection) -> None:
        while not self._closed.is_set():
            select.select([session.fileno(), self._stop_reader], [], [], 60)
            partitions: set[Partition] = set()
            for notice in session.notifies(timeout=0):
                partitions |= _parse(notice.payload)
            if partitions:
                self._on_ready(partitions)
            elif not self._closed.is_set():
                session.execute("SELECT 1")  # readable without a notice: find out whether the server is still there


def _connect() -> psycopg.Connection:
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    parameters.pop("context", None)
    return psycopg.connect(**parameters, autocommit=True)


def _payloads(partitions: Iterable[Partition]) -> Iterable[str]:
    payload = ""
    for subscription, part in sorted(partitions):
        entry = f"{subscription}:{part}"
        if len(payload) + len(entry) > LONGEST_PAYLOAD:
            yield payload
            payload = ""
        payload = f"{payload},{entry}" if payload else entry
    yield payload


def _parse(payload: str) -> set[Partition]:
    pairs = (entry.split(":") for entry in payload.split(",") if entry)
    return {(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2}
