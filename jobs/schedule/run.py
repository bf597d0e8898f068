"""What a job's handler is given: its slot, chunks under the fencing token, progress.

Guarantee: what is written inside `fenced()` is committed only while the run owns its job's lock. Once the lock is lost,
the time is up or the process was told to stop, no further chunk begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from jobs.errors import LockLostError, StoppedError, TimeLimitError
from jobs.schedule import store
from jobs.schedule.declared import Job

Tell = Callable[[int, int | None, dict[str, Any]], None]


class Run:
    """One attempt at one slot. Made by perform.py; a handler uses what is public here."""

    def __init__(self, job: Job, claimed: store.Claimed, *, tell: Tell | None = None) -> None:
        self.job = job.name
        self.scheduled_for: datetime = claimed.scheduled_for
        self.attempt = claimed.attempt
        self.claimed = claimed
        self.stopping = False  # set from a signal handler
        self.lost = False  # set by the thread that renews the lock
        self._job = job
        self._tell = tell
        self._ends_at = time.monotonic() + job.time_limit.total_seconds()

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """One chunk: a transaction that commits only while the lock is ours. Not to be nested; keep it short.

        Raises LockLostError, StoppedError or TimeLimitError before it begins; let them pass. Nobody can take the lock
        while the chunk is open, and the server ends a chunk that outlives the time limit, or that idles for a TTL.
        """
        self.go_on()
        with transaction.atomic(durable=True):
            if not store.hold(self.claimed, limit=self.remaining(), idle=self._job.lock_ttl):
                raise LockLostError(f"{self.job}: the lock of token {self.claimed.token} is another's, or nobody's")
            yield

    def progress(self, done: int, total: int | None = None, **counts: Any) -> None:
        """Say how far it is, outside a chunk. `counts` replace those said before and stay with the finished run.

        Raises as `fenced` does, so a job that says its progress between chunks can be stopped there.
        """
        if not store.write_progress(self.claimed, done=done, total=total, counts=counts):
            raise LockLostError(f"{self.job}: the run of token {self.claimed.token} is no longer ours")
        if self._tell:
            self._tell(done, total, counts)
        self.go_on()

    def go_on(self) -> None:
        """Raise if this run should not go on: for handlers that compute long without a chunk."""
        if self.lost:
            raise LockLostError(f"{self.job}: the lock was lost")
        if self.remaining() <= timedelta(0):
            raise TimeLimitError(f"took longer than its {self._job.time_limit.total_seconds():.0f} s")
        if self.stopping:
            raise StoppedError("the process was told to stop")

    def remaining(self) -> timedelta:
        return timedelta(seconds=self._ends_at - time.monotonic())
