"""The scheduler: notes slots, finds dead runs, begins what may run. `manage.py run_scheduler`, on any number of hosts.

Guarantee: `step` does one round and says when the next is due. All it decides is in the database before it acts, so any
other scheduler can carry on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

import structlog
from django.conf import settings

from jobs.schedule import cron, store
from jobs.schedule.crashes import reap
from jobs.schedule.declared import Job
from jobs.schedule.noting import note_due

log = structlog.get_logger(__name__)
TEND_SECONDS = 0.5


class Launcher(Protocol):
    """Where runs happen: in processes (children.py)."""

    def room(self) -> int: ...
    def busy(self) -> bool: ...
    def start(self, job: Job, claimed: store.Claimed) -> None: ...
    def tend(self) -> None: ...
    def kill(self, token: int) -> None: ...


class Scheduler:
    """One scheduler process. Any number may run; each job's rows and lock decide between them."""

    def __init__(self, jobs: Mapping[str, Job], launcher: Launcher, *, owner: str) -> None:
        self._jobs = jobs
        self._launcher = launcher
        self._owner = owner

    def open(self) -> None:
        """Once at the start: jobs seen for the first time begin now."""
        store.insert_missing_jobs(list(self._jobs.values()))
        log.info("scheduler.started", jobs=sorted(self._jobs))

    def step(self, now: datetime) -> float:
        """One round at the database's time `now`; returns the seconds until the next one."""
        store.beat("scheduler", self._owner)
        self._launcher.tend()
        for dead in reap(self._jobs):
            self._launcher.kill(dead.token)
        more = self._note(now)
        for name in store.due_jobs(self._jobs):
            if self._launcher.room() <= 0:
                break
            claimed = store.begin_due(self._jobs[name], owner=self._owner)
            if claimed:
                self._launcher.start(self._jobs[name], claimed)
        return 0.0 if more else self._wait(now)

    def _note(self, now: datetime) -> bool:
        """Note what is due; whether there was so much that another round is due at once."""
        more = False
        for name, (expression, until) in store.noted_until(self._jobs).items():
            newest = cron.latest_slot(expression, now)
            if newest > until:
                noted = note_due(self._jobs[name], now=now)
                more = more or bool(noted and noted[-1].slot < newest)
        return more

    def _wait(self, now: datetime) -> float:
        """Until the next slot or the next attempt, but never longer than the poll interval."""
        waits = [settings.SCHEDULER_POLL_INTERVAL.total_seconds()]
        waits += [(cron.next_slot(job.cron, now) - now).total_seconds() for job in self._jobs.values()]
        if (due := store.next_due(self._jobs)) is not None:
            waits.append(due)
        if self._launcher.busy():
            waits.append(TEND_SECONDS)
        return max(min(waits), 0.0)

    def close(self) -> None:
        store.sign_off("scheduler", self._owner)
        log.info("scheduler.stopped")
