"""What the judges are told: reads of runs, locks, processes, dead letters and gauges. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from statistics import median

from django.conf import settings
from django.db.models import Max

from jobs.alarms.queue_rules import QueueLimits, ServerFacts
from jobs.alarms.rules import AwayFacts, JobFacts, LetterFacts, Limits, RunFacts
from jobs.dead_letters import store as dead_letters
from jobs.gauges.server import Server
from jobs.models import Breaker, JobRun, Process, ScheduledJob
from jobs.schedule import cron
from jobs.schedule.declared import Job

USUAL_OF = 20  # how many runs make the usual time


def limits() -> Limits:
    return Limits(
        late_after=settings.SCHEDULE_LATE_AFTER,
        grace=settings.WORKER_GRACE,
        slow_factor=settings.SLOW_RUN_FACTOR,
        slow_floor=settings.SLOW_RUN_FLOOR,
        silent_after=settings.PROCESS_SILENT_AFTER,
        letters_warn_after=settings.DEAD_LETTER_WARN_AFTER,
        letters_page_after=settings.DEAD_LETTER_PAGE_AFTER,
        letters_kept=settings.DEAD_LETTER_RETENTION,
        letters_warn_expiry=settings.DEAD_LETTER_WARN_EXPIRY,
        letters_decide_within=settings.DEAD_LETTER_DECIDE_WITHIN_BUSINESS_DAYS,
        away_page_after=settings.ALERT_PROMISE,
    )


def queue_limits() -> QueueLimits:
    return QueueLimits(
        warn_share=settings.ALARM_WARN_SHARE,
        page_share=settings.ALARM_PAGE_SHARE,
        silent_after=settings.ARRIVALS_SILENT_AFTER,
        silent_factor=settings.ARRIVALS_SILENT_FACTOR,
        suspended_after=settings.SUSPENDED_TOO_LONG,
        horizon_after=settings.HORIZON_HELD_AFTER,
        dead_rows=settings.DEAD_TUPLES_MOST,
        notify_queue=settings.NOTIFY_QUEUE_MOST,
        connections=settings.CONNECTIONS_MOST,
    )


def server(seen: Server) -> ServerFacts:
    return ServerFacts(
        held=seen.horizon.held if seen.horizon else None,
        held_by=str(seen.horizon or ""),
        tables={table.name: (table.live, table.dead) for table in seen.tables},
        notify_queue=seen.notify_queue,
        connections=seen.connections,
        max_connections=seen.max_connections,
    )


def jobs(declared: Iterable[Job], now: datetime) -> list[JobFacts]:
    """The facts of each declared job that has been seen by a scheduler or a migration."""
    known = ScheduledJob.objects.filter(retired_at=None).select_related("lock").in_bulk()
    return [_job(job, known[job.name], now) for job in declared if job.name in known]


def _job(job: Job, row: ScheduledJob, now: datetime) -> JobFacts:
    begun = row.runs.filter(outcome__in=JobRun.BEGUN)
    last = begun.filter(ended_at__isnull=False).order_by("-ended_at").first()
    running = begun.filter(outcome=JobRun.Outcome.RUNNING).first()
    ran = list(row.runs.filter(outcome=JobRun.Outcome.RAN).order_by("-ended_at")[: USUAL_OF + 1])
    before = [run for run in ran if last is None or run.pk != last.pk][:USUAL_OF]
    expected = cron.latest_slot(row.cron, now - 2 * settings.SCHEDULE_LATE_AFTER)
    return JobFacts(
        name=job.name,
        heartbeat=job.heartbeat,
        time_limit=job.time_limit,
        first_seen_at=row.first_seen_at,
        paused_at=row.paused_at,
        ran_at=ran[0].ended_at if ran else None,
        running=_run(running, row.lock.expires_at) if running else None,
        last=_run(last) if last else None,
        usual=timedelta(seconds=median(run.duration.total_seconds() for run in before if run.duration))
        if before
        else None,
        samples=len(before),
        unnoticed=expected if expected > row.noted_until else None,
    )


def _run(run: JobRun, lock_expires_at: datetime | None = None) -> RunFacts:
    assert run.started_at is not None  # the schema says so of begun runs
    return RunFacts(run.scheduled_for, run.outcome, run.started_at, run.ended_at, run.reason, lock_expires_at)


def beats() -> dict[str, datetime]:
    """The latest sign of life of each kind of process."""
    return dict(Process.objects.values_list("kind").annotate(Max("beat_at")).order_by())


def letters(now: datetime) -> list[LetterFacts]:
    """Of each subscription that has dead letters nobody has decided about, those that are quarantined left out."""
    return [LetterFacts(*row) for row in dead_letters.waiting(now)]


def open_breakers() -> list[AwayFacts]:
    rows = Breaker.objects.filter(opened_at__isnull=False)
    return [AwayFacts(row.name, row.opened_at, row.reason) for row in rows if row.opened_at]
