"""One streaming replica: how far it is, whether it is young enough, and whether it answers at all.

Guarantee: `has_replayed` is True only if this replica, asked a moment ago over this thread's own connection, is a
standby that has replayed the position asked for, and all that was committed REPLICA_MAX_LAG ago. It asks the replica
once, waits no longer than its time limits, and for a while after a failure it does not ask at all.

Age is not taken from the replica, whose own view is good while it is cut off, or follows one that is. We note where
the primary's log was, and when; whoever has replayed such a mark is no older than it.
"""

from __future__ import annotations

import selectors
import threading
import time
from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings
from django.db import Error, OperationalError, connection, connections
from psycopg.pq import ExecStatus

from jobs.database import sqlstate
from winecellar.replicas.age import Age, Verdict

log = structlog.get_logger(__name__)

# A server that was promoted is no replica any more, however far it is: NULL.
REPLAYED = b"SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() - '0/0' END"
# After a commit this is at or behind its end, also where synchronous_commit is off and nothing is flushed yet.
WRITTEN = "SELECT pg_current_wal_insert_lsn() - '0/0'"
UNKNOWN_AGE = "nobody looked for a while"  # no fault: the page that finds it so makes the mark for the next
RECOVERY_CONFLICT = "40001"  # the primary took away what a query there still read; that says nothing of the next query


def primary_position() -> int:
    """Where the primary's log is now; every commit that has been answered lies before it. One query."""
    with connection.cursor() as cursor:
        cursor.execute(WRITTEN)
        return int(cursor.fetchone()[0])


class NoAnswerInTimeError(OperationalError):
    """The connection is there, and nobody at the other end."""


@dataclass(frozen=True, slots=True)
class Standing:
    """For gauges. `behind_seconds` is an upper bound, None before anything is known of it."""

    alias: str
    why_not: str
    behind_seconds: float | None


class Standby:
    """Shared by the threads of a process; its connection is each thread's own. `clock` is a monotonic one."""

    def __init__(self, alias: str, clock: Any = time.monotonic) -> None:
        self.alias = alias
        self._clock = clock
        self._lock = threading.Lock()
        self._age = Age()
        self._marked_at = -float("inf")
        self._asks_again_at = -float("inf")
        self._why_not = UNKNOWN_AGE
        self._said_left = False

    def has_replayed(self, position: int) -> bool:
        if not self._may_ask():
            return False
        self._mark()
        try:
            replayed = self._ask()
        except Error as error:
            self.failed(error)
            return False
        if replayed is None:
            self._leave("promoted")
            return False
        return self._is_young(replayed) and replayed >= position

    def failed(self, error: Error) -> None:
        """A query there failed. Its connection goes, and the others leave it alone for a while."""
        connections[self.alias].close()
        if sqlstate(error) != RECOVERY_CONFLICT:
            self._leave(type(error).__name__)

    def standing(self) -> Standing:
        with self._lock:
            return Standing(self.alias, self._why_not, self._age.behind(self._clock()))

    def _may_ask(self) -> bool:
        """After a failure one thread tries again, and the others wait for what it finds."""
        with self._lock:
            now = self._clock()
            if now < self._asks_again_at:
                return False
            if self._why_not:
                self._asks_again_at = now + settings.REPLICA_RETRY_AFTER.total_seconds()
            return True

    def _mark(self) -> None:
        with self._lock:
            now = self._clock()
            if now - self._marked_at < settings.REPLICA_MARK_INTERVAL.total_seconds():
                return
            self._marked_at = now
        position = primary_position()
        with self._lock:
            self._age.mark(position, now)

    def _ask(self) -> int | None:
        """A server that was restarted has left us a dead connection, so a second one is tried."""
        if connections[self.alias].connection is not None:
            try:
                return self._ask_once()
            except NoAnswerInTimeError:
                raise
            except OperationalError:
                connections[self.alias].close()
        return self._ask_once()

    def _ask_once(self) -> int | None:
        connections[self.alias].ensure_connection()
        with connections[self.alias].wrap_database_errors:
            return _ask_within(connections[self.alias].connection, settings.REPLICA_ANSWER_TIME.total_seconds())

    def _is_young(self, replayed: int) -> bool:
        with self._lock:
            limit = settings.REPLICA_MAX_LAG.total_seconds()
            verdict = self._age.judge(replayed=replayed, now=self._clock(), limit=limit)
            self._asks_again_at = -float("inf")  # it answers
            if verdict is Verdict.LATE:
                self._not_now("lags")
            elif verdict is Verdict.YOUNG:
                self._why_not = ""
                if self._said_left:
                    self._said_left = False
                    log.info("replica.back", replica=self.alias)
            else:
                self._why_not = self._why_not or UNKNOWN_AGE
        return verdict is Verdict.YOUNG

    def _leave(self, why: str) -> None:
        with self._lock:
            self._asks_again_at = self._clock() + settings.REPLICA_RETRY_AFTER.total_seconds()
            self._not_now(why)

    def _not_now(self, why: str) -> None:
        if not (self._said_left and self._why_not == why):
            self._said_left = True
            log.warning("replica.left", replica=self.alias, why=why)
        self._why_not = why


def _ask_within(raw: Any, seconds: float) -> int | None:
    """The query's answer. A server that stands still keeps its connections open, and only our own clock ends a wait.
    Raises psycopg's or Django's OperationalError."""
    server, deadline = raw.pgconn, time.monotonic() + seconds
    server.send_query(REPLAYED)
    with selectors.DefaultSelector() as selector:
        selector.register(server.socket, selectors.EVENT_READ)
        while server.flush() or server.is_busy():
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoAnswerInTimeError("no answer in time")
            selector.select(left)
            server.consume_input()
    value = None
    while result := server.get_result():
        if result.status != ExecStatus.TUPLES_OK:
            raise OperationalError("no answer")
        text = result.get_value(0, 0)
        value = None if text is None else int(text)
    return value
