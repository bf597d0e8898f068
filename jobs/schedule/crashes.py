"""Runs whose process died or fell silent: recorded, and then treated by their job's policy."""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from django.db import transaction

from jobs.schedule import store
from jobs.schedule.declared import Job
from jobs.schedule.perform import goes_again
from jobs.schedule.rules import Outcome

log = structlog.get_logger(__name__)
CRASH = "RunCrash"


def settle_crash(job: Job, claimed: store.Claimed, reason: str) -> bool:
    """Count the attempt as crashed: the slot waits for another one, or ends; whether it was still under way."""
    if goes_again(job, claimed):
        written = store.give_back(claimed, Outcome.CRASHED, error_class=CRASH, reason=reason)
    else:
        written = store.finish(claimed, Outcome.CRASHED, error_class=CRASH, reason=reason)
    if written:
        log.error("run.crashed", job=job.name, slot=claimed.scheduled_for.isoformat(), reason=reason)
    return written


def reap(jobs: Mapping[str, Job]) -> list[store.Claimed]:
    """Settle every run whose lock has run out. Whoever held it can commit nothing more."""
    with transaction.atomic():
        expired = store.lock_expired(jobs)
        return [claimed for claimed in expired if settle_crash(jobs[claimed.job], claimed, "its lock ran out")]
