"""The watchman: counts the queue and looks at every alarm, again and again. `manage.py run_watchman`, beside the
schedulers.

What it watches does not run in it, so it can say that a scheduler is dead. That it is dead itself, a scheduled job says
(alarm-evaluation), and the outside monitor when both are.
"""

from __future__ import annotations

import time
from datetime import datetime

import structlog
from django.conf import settings

from jobs import monitor
from jobs.alarms import evaluation, notices
from jobs.gauges import census
from jobs.schedule import store

log = structlog.get_logger(__name__)
NAME = "watchman"


class Watchman:
    """One watchman process. Any number may run; one of them evaluates at a time."""

    def __init__(self, *, owner: str) -> None:
        self._owner = owner
        self._ping_at = 0.0

    def step(self, now: datetime) -> float:
        """One look at the database's time `now`; returns the seconds until the next one."""
        store.beat(NAME, self._owner)
        census.take()
        well = evaluation.evaluate(now)
        notices.tell(now)
        self._ping(well=well)
        return settings.WATCHMAN_INTERVAL.total_seconds()

    def failed(self) -> None:
        """After a look that raised: the outside monitor should know."""
        self._ping_at = 0.0
        self._ping(well=False)

    def _ping(self, *, well: bool) -> None:
        if well and time.monotonic() < self._ping_at:
            return
        self._ping_at = time.monotonic() + settings.MONITOR_WATCHMAN_INTERVAL.total_seconds()
        (monitor.succeeded if well else monitor.failed)(NAME)

    def close(self) -> None:
        store.sign_off(NAME, self._owner)
        log.info("watchman.stopped")
