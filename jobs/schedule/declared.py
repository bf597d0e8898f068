"""What a scheduled job is. Declared in winecellar/schedule.py, found by the setting SCHEDULE, mirrored in jobs_job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from django.conf import settings

from jobs.schedule.rules import CatchUp, Overlap

if TYPE_CHECKING:
    from jobs.schedule.run import Run

__all__ = ["CatchUp", "Job", "Overlap", "Zone", "load_schedule"]


class Zone(Enum):
    """Schedules are UTC. The other one exists so that a check can refuse it with the reason, not a crash."""

    UTC = "UTC"
    LOCAL = "local"


@dataclass(frozen=True)
class Job:
    """One scheduled job.

    `cron`: five fields, UTC, in the plain subset of jobs/schedule/cron.py.
    `handler`: called with the `Run`; commits in chunks, each inside `run.fenced()`. It may be called again for a slot
    that failed, crashed or was asked for by hand, so it must come to the same result.
    `lock_ttl`: how long after its last sign of life a run is taken for dead; renewed each third of it.
    `overlap`: what becomes of a slot whose time comes while the job still runs.
    `catch_up`: what becomes of slots whose time passed while no scheduler ran.
    `heartbeat`: an alarm opens when no run has completed for so long.
    `time_limit`: one attempt that takes longer is ended and counts as failed.
    `attempts`: how often one slot is tried. A failed attempt is tried again after a random wait of up to
    settings.SCHEDULE_RETRY_BASE, doubled each time; a PermanentError is not.
    """

    name: str
    cron: str
    handler: Callable[[Run], None]
    lock_ttl: timedelta
    overlap: Overlap
    catch_up: CatchUp
    heartbeat: timedelta
    time_limit: timedelta
    attempts: int = 3
    zone: Zone = Zone.UTC


@cache
def load_schedule() -> dict[str, Job]:
    """The jobs by name, from the module that settings.SCHEDULE names, as Django finds ROOT_URLCONF."""
    module = import_module(settings.SCHEDULE)
    return {job.name: job for job in module.SCHEDULE}
