"""One attempt at a slot from claim to ending: call the handler, then write what came of it. By scheduler and hand.

Guarantee: whatever the handler does, the run ends in exactly one of: ran, waiting for another attempt, failed; or it
has lost its lock, and then nothing is written, since whoever took the lock wrote it.
"""

from __future__ import annotations

import random
import time
from enum import StrEnum

import structlog
from django.conf import settings
from django.db import connection

from jobs import monitor, tracing
from jobs.database import connection_is_lost, database_is_away
from jobs.errors import LockLostError, StoppedError, TimeLimitError
from jobs.retry import CRASHES, Kind, ceiling, classify
from jobs.schedule import cron, rules, store
from jobs.schedule.alive import KeepAlive
from jobs.schedule.declared import Job
from jobs.schedule.rules import Outcome
from jobs.schedule.run import Run

log = structlog.get_logger(__name__)


class Ending(StrEnum):
    """What an attempt came to."""

    RAN = "ran"
    FAILED = "failed"
    AGAIN = "again"
    STOPPED = "stopped"
    LOST = "lost"


def perform(job: Job, run: Run, *, may_exit: bool = False, last: bool = False) -> Ending:
    """Run one claimed attempt to its end. `may_exit`: this process exists for it, and may be ended if it hangs.

    `last`: whatever goes wrong, the slot ends with it.
    """
    slot = run.scheduled_for.isoformat()
    facts = {"job": run.job, "scheduled_for": slot, "attempt": run.attempt}
    log.info("run.started", **facts, token=run.claimed.token)
    monitor.started(run.job)
    began = time.monotonic()
    try:
        with (
            KeepAlive(job, run, may_exit=may_exit),
            tracing.scheduled(run.job, slot, run.attempt),
            structlog.contextvars.bound_contextvars(job=run.job),
        ):
            job.handler(run)
    except LockLostError as lost:
        return _lost(facts, str(lost))
    except (Exception, *CRASHES) as error:
        ending = _settle(job, run, error, last=last)
    else:
        ending = Ending.RAN if store.finish(run.claimed, Outcome.RAN) else Ending.LOST
    seconds = round(time.monotonic() - began, 3)
    match ending:
        case Ending.RAN:
            log.info("run.finished", **facts, seconds=seconds)
            monitor.succeeded(run.job)
        case Ending.LOST:
            return _lost(facts, "found at its end")
        case Ending.FAILED:
            log.error("run.failed", **facts, seconds=seconds)
            monitor.failed(run.job)
        case _:
            log.info("run.given_back", **facts, seconds=seconds, why=ending.value)
    return ending


def _settle(job: Job, run: Run, error: BaseException, *, last: bool) -> Ending:
    """Write the failure: another attempt later, or the end of this slot. A database that is away is the caller's."""
    if connection_is_lost(error):
        connection.close()
    if isinstance(error, StoppedError) and not last:
        held = store.give_back(run.claimed, Outcome.WAITING, charged=False)
        return Ending.STOPPED if held else Ending.LOST
    kind = (
        Kind.TRANSIENT
        if isinstance(error, StoppedError | TimeLimitError)
        else classify(error, is_away=database_is_away)
    )
    if kind in {Kind.UNCLASSIFIED, Kind.CRASH}:
        log.error(kind.value, job=run.job, exc_info=error)
    again = not last and kind is not Kind.PERMANENT and goes_again(job, run.claimed)
    error_class, reason = type(error).__name__, str(error) or type(error).__name__
    if not again:
        held = store.finish(run.claimed, Outcome.FAILED, error_class=error_class, reason=reason)
        return Ending.FAILED if held else Ending.LOST
    delay = random.uniform(0, ceiling(run.attempt, base=settings.SCHEDULE_RETRY_BASE.total_seconds()))  # noqa: S311
    held = store.give_back(run.claimed, Outcome.FAILED, error_class=error_class, reason=reason, delay=delay)
    return Ending.AGAIN if held else Ending.LOST


def goes_again(job: Job, claimed: store.Claimed) -> bool:
    """Whether this slot has another attempt, now that this one failed or crashed."""
    return rules.goes_again(
        attempt=claimed.attempt,
        attempts=job.attempts,
        next_slot=cron.next_slot(job.cron, claimed.scheduled_for),
        now=store.now(),
        overlap=job.overlap,
        catch_up=job.catch_up,
    )


def _lost(facts: dict[str, object], detail: str) -> Ending:
    log.warning("run.lock_lost", **facts, detail=detail)
    return Ending.LOST
