"""A circuit breaker that all workers share: one row for each other side that we depend on, such as the mail provider.

Guarantee: while it is open, one effect at a time is tried, over all workers on all hosts (a lease in its row); a
worker that dies with the probe gives it up when the lease ends. While all is well nothing is written, and one small
row is read per poll. What is decided is in breaker_rules.py. Called by Performance, in the lane's thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from enum import Enum, auto

import structlog
from django.conf import settings
from django.db import connection, transaction

from jobs import breaker_rules as rules
from jobs.breaker_rules import Limits, State

log = structlog.get_logger(__name__)
COLUMNS = tuple(field.name for field in fields(State))
READ = f"SELECT clock_timestamp(), {', '.join(COLUMNS)}, reason FROM jobs_breaker WHERE name = %s"  # noqa: S608
WRITE = f"UPDATE jobs_breaker SET reason = %s, {', '.join(f'{c} = %s' for c in COLUMNS)} WHERE name = %s"  # noqa: S608
MAKE = "INSERT INTO jobs_breaker (name) VALUES (%s) ON CONFLICT DO NOTHING"


class Gate(Enum):
    CLOSED = auto()  # everything may go
    SHUT = auto()  # nothing may go yet
    PROBE = auto()  # one may try, if it is the first to ask


def limits() -> Limits:
    return Limits(
        failures=settings.BREAKER_FAILURES,
        memory=settings.BREAKER_MEMORY,
        first=settings.BREAKER_FIRST_WAIT,
        longest=settings.BREAKER_LONGEST_WAIT,
        lease=settings.EXTERNAL_TIME_LIMIT,
    )


class Breaker:
    """One lane's view of a shared breaker: read once per poll, and after each change of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._state = State()
        self._now: datetime | None = None  # the database's, when it was read ...
        self._read_at = float("-inf")  # ... and our own then

    def gate(self) -> Gate:
        """What may be begun now. Reads the row where that was last done a poll ago."""
        if time.monotonic() - self._read_at >= settings.WORKER_POLL_INTERVAL.total_seconds():
            self._learn(*_read(self.name)[:2])
        if not self._state.is_open:
            return Gate.CLOSED
        return Gate.PROBE if rules.may_probe(self._state, self._database_time()) else Gate.SHUT

    def take_probe(self) -> int | None:
        """The token of the one probe, if it is ours to make; give it back by `failed`, `succeeded` or `release`."""
        token = random.getrandbits(62)  # told from the others', no secret
        taken = False

        def take(state: State, now: datetime) -> State:
            nonlocal taken
            taken = state.is_open and rules.may_probe(state, now)
            return rules.with_probe(state, now=now, token=token, limits=limits()) if taken else state

        self._change(take)
        return token if taken else None

    def release(self, token: int) -> None:
        """The probe was not made: there was nothing to make it with."""
        self._change(lambda state, now: rules.without_probe(state, token=token))

    def failed(self, reason: str, *, retry_after: float, token: int | None) -> float:
        """Note that the other side was unwell; the seconds until the next probe, 0 where everything may still go."""
        before = self._change(
            lambda state, now: rules.after_failure(
                state,
                now=now,
                retry_after=timedelta(seconds=retry_after),
                token=token,
                limits=limits(),
                uniform=random.uniform,
            ),
            reason=reason,
        )
        if not self._state.is_open:
            return 0.0
        assert self._state.probe_at is not None
        wait = max((self._state.probe_at - self._database_time()).total_seconds(), 0.0)
        if not before.is_open:
            log.warning("breaker.opened", breaker=self.name, reason=reason, seconds=round(wait, 1))
        elif token is not None:
            log.info("breaker.still_open", breaker=self.name, reason=reason, seconds=round(wait, 1))
        return wait

    def succeeded(self, count: int, *, token: int | None) -> None:
        """Note what went well; nothing is written while nothing has failed of late."""
        if not self._state.is_troubled and token is None:
            return
        before = self._change(lambda state, now: rules.after_success(state, count=count, token=token, limits=limits()))
        if before.is_open and not self._state.is_open:
            log.info("breaker.closed", breaker=self.name)

    def seconds_since(self, moment: datetime) -> float:
        """How long ago by the database's clock, which is read where that was not done yet."""
        if self._now is None:
            self._learn(*_read(self.name)[:2])
        return (self._database_time() - moment).total_seconds()

    def _change(self, change: Callable[[State, datetime], State], *, reason: str = "") -> State:
        """Decide under the row's lock; what it was before. An empty `reason` leaves what stands there."""
        with transaction.atomic():
            now, before, known = _read(self.name, lock=True)
            after = change(before, now)
            if after != before:
                with connection.cursor() as cursor:
                    cursor.execute(WRITE, [reason or known, *(getattr(after, c) for c in COLUMNS), self.name])
        self._learn(now, after)
        return before

    def _learn(self, now: datetime, state: State) -> None:
        self._now, self._state, self._read_at = now, state, time.monotonic()

    def _database_time(self) -> datetime:
        assert self._now is not None
        return self._now + timedelta(seconds=time.monotonic() - self._read_at)


def close(name: str) -> bool:
    """An operator knows that the other side is well again; whether there is such a breaker."""
    with connection.cursor() as cursor:
        cursor.execute(WRITE, ["", *(getattr(State(), c) for c in COLUMNS), name])
        return bool(cursor.rowcount)


def _read(name: str, *, lock: bool = False) -> tuple[datetime, State, str]:
    """The database's time, the state and the last reason; makes the row where there is none and it is to be changed."""
    sql = READ + (" FOR UPDATE" if lock else "")
    with connection.cursor() as cursor:
        cursor.execute(sql, [name])
        row = cursor.fetchone()
        if row is None and lock:
            cursor.execute(MAKE, [name])
            cursor.execute(sql, [name])
            row = cursor.fetchone()
        if row is None:
            cursor.execute("SELECT clock_timestamp()")
            return cursor.fetchone()[0], State(), ""
    return row[0], State(*row[1:-1]), row[-1]
