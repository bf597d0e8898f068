"""The runs that a scheduler has under way, each a process of its own: `manage.py run_job NAME --claimed RUN:TOKEN`.

A process per run can be ended when it hangs, crashes alone, and gives its memory back. It keeps its lock itself
(alive.py): a scheduler that dies takes it along, and a run that is stopped loses its lock although its scheduler lives.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from signal import SIGKILL, SIGTERM

import structlog
from django.conf import settings

from jobs.schedule import store
from jobs.schedule.crashes import settle_crash
from jobs.schedule.declared import Job
from jobs.schedule.rules import Outcome

log = structlog.get_logger(__name__)
LOOK_SECONDS = 0.05


@dataclass
class Child:
    job: Job
    claimed: store.Claimed
    process: subprocess.Popen[bytes]
    began: float = field(default_factory=time.monotonic)


class Children:
    """All of one scheduler's. `manage`: the command line up to the management command."""

    def __init__(self, manage: Sequence[str], *, at_once: int) -> None:
        self._manage = list(manage)
        self._at_once = at_once
        self._children: list[Child] = []

    def room(self) -> int:
        return self._at_once - len(self._children)

    def busy(self) -> bool:
        return bool(self._children)

    def start(self, job: Job, claimed: store.Claimed) -> None:
        command = [*self._manage, "run_job", job.name, "--claimed", f"{claimed.run_id}:{claimed.token}"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
        self._children.append(Child(job, claimed, process))
        log.info("child.started", job=job.name, pid=process.pid, slot=claimed.scheduled_for.isoformat())

    def tend(self) -> None:
        """Settle those that ended without saying how; kill those that are long past their time limit."""
        for child in list(self._children):
            code = child.process.poll()
            if code is not None:
                if code:
                    settle_crash(child.job, child.claimed, f"its process ended with code {code}")
                self._children.remove(child)
            elif time.monotonic() - child.began > (child.job.time_limit + 2 * settings.WORKER_GRACE).total_seconds():
                log.error("child.hung", job=child.job.name, pid=child.process.pid)
                child.process.kill()

    def kill(self, token: int) -> None:
        """End the one whose run was found dead: it is stopped or hangs, and may do nothing more."""
        for child in self._children:
            if child.claimed.token == token:
                child.process.kill()

    def stop(self) -> None:
        """Tell all to stop, wait for settings.WORKER_GRACE, kill the rest and give their slots back uncharged."""
        for child in self._children:
            if child.process.poll() is None:
                child.process.send_signal(SIGTERM)
        deadline = time.monotonic() + settings.WORKER_GRACE.total_seconds()
        for child in self._children:
            try:
                child.process.wait(max(deadline - time.monotonic(), LOOK_SECONDS))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()  # all of them are ended before the database may fail us
        for child in self._children:
            if child.process.returncode == -SIGKILL:
                store.give_back(child.claimed, Outcome.WAITING, charged=False)
                log.warning("child.killed", job=child.job.name, pid=child.process.pid)
        self.tend()
