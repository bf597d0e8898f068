"""Keeps a run's lock while its handler works: a thread with a connection of its own, beside it in the same process.

Guarantee: the lock is renewed exactly as long as this process lives, is not stopped, and its parent is there. A process
that has passed its time limit and does not come to a chunk's end is ended here.
"""

from __future__ import annotations

import os
import threading
import time

import structlog
from django.conf import settings
from django.db import Error, connection

from jobs.schedule import store
from jobs.schedule.declared import Job
from jobs.schedule.rules import Outcome
from jobs.schedule.run import Run

log = structlog.get_logger(__name__)
OVERTIME = 70  # the exit code of a process that had to end itself
LOOK_SECONDS = 1.0


class KeepAlive:
    """Use as a context around the handler. `may_exit`: the process is ours to end when the handler hangs."""

    def __init__(self, job: Job, run: Run, *, may_exit: bool) -> None:
        self._job, self._run, self._may_exit = job, run, may_exit
        self._done = threading.Event()
        self._parent = os.getppid()
        self._thread = threading.Thread(target=self._keep, name=f"alive-{job.name}", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _keep(self) -> None:
        third = self._job.lock_ttl.total_seconds() / 3
        renew_at = time.monotonic() + third
        try:
            while not self._done.wait(min(LOOK_SECONDS, third / 2)):
                if self._may_exit and os.getppid() != self._parent:
                    log.error("run.orphaned", job=self._run.job)
                    os._exit(OVERTIME)
                if self._may_exit and -self._run.remaining() > settings.WORKER_GRACE:
                    self._end_overtime()
                if time.monotonic() >= renew_at and not self._run.lost:
                    renew_at = time.monotonic() + (third if self._renewed() else LOOK_SECONDS)
        finally:
            connection.close()

    def _renewed(self) -> bool:
        """False when the database is away: then it is tried again soon, and the lock may run out."""
        try:
            self._run.lost = not store.renew(self._run.claimed, ttl=self._job.lock_ttl)
        except Error as error:
            log.warning("lock.not_renewed", job=self._run.job, error=type(error).__name__)
            connection.close()
            return False
        return True

    def _end_overtime(self) -> None:
        reason = f"took longer than its {self._job.time_limit.total_seconds():.0f} s and did not come to an end"
        try:
            store.finish(self._run.claimed, Outcome.FAILED, error_class="TimeLimitError", reason=reason)
        except Error as error:
            log.warning("run.ending_not_written", job=self._run.job, error=type(error).__name__)
        log.error("run.overtime", job=self._run.job)
        os._exit(OVERTIME)
