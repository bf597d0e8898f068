"""The schedule under test: its own jobs, known since long ago, with no slot noted yet."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from jobs.models import JobRun, ScheduledJob
from jobs.schedule import store
from jobs.schedule.declared import Job, load_schedule
from jobs.schedule.perform import perform
from jobs.schedule.run import Run
from jobs.schedule.scheduler import Scheduler
from tests.jobs.schedule import under_test

T = datetime(2026, 3, 14, 2, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TABLES = ("jobs_notice", "jobs_incident", "jobs_lock", "jobs_run", "jobs_process", "jobs_job")


class Inline:
    """Performs a run where it is begun, to its end."""

    def room(self) -> int:
        return 10

    def busy(self) -> bool:
        return False

    def start(self, job: Job, claimed: store.Claimed) -> None:
        perform(job, Run(job, claimed))

    def tend(self) -> None: ...
    def kill(self, token: int) -> None: ...


class Held(Inline):
    """Leaves what was begun under way, until the test ends it."""

    def __init__(self) -> None:
        self.runs: list[tuple[Job, Run]] = []
        self.killed: list[int] = []

    def start(self, job: Job, claimed: store.Claimed) -> None:
        self.runs.append((job, Run(job, claimed)))

    def kill(self, token: int) -> None:
        self.killed.append(token)

    def end(self) -> None:
        perform(*self.runs.pop(0))


@pytest.fixture
def schedule(transactional_db: None, settings: Any) -> Iterator[dict[str, Job]]:
    with clean_schedule():
        settings.SCHEDULE = "tests.jobs.schedule.under_test"
        load_schedule.cache_clear()
        jobs = load_schedule()
        store.insert_missing_jobs(list(jobs.values()))
        yield jobs
        under_test.acts.clear()
    load_schedule.cache_clear()


@contextmanager
def clean_schedule() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(TABLES)}")
        cursor.execute("DROP TABLE IF EXISTS test_chunk")
        cursor.execute("CREATE TABLE test_chunk (job text, slot timestamptz, token bigint, chunk int)")
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(TABLES)}")
        cursor.execute("DROP TABLE IF EXISTS test_chunk")


def only(jobs: dict[str, Job], name: str) -> dict[str, Job]:
    return {name: jobs[name]}


def scheduler(jobs: dict[str, Job], launcher: Any = None) -> Scheduler:
    return Scheduler(jobs, launcher or Inline(), owner="host:1")


def known_since(name: str, time: datetime) -> None:
    """As if the job had been declared then, and no slot been noted since."""
    ScheduledJob.objects.filter(name=name).update(first_seen_at=time, noted_until=time)


def told(name: str) -> list[tuple[str, str]]:
    """The job's slots in order, as hour and outcome; what was caught up or asked for says so."""
    found = []
    for run in JobRun.objects.filter(job=name).order_by("scheduled_for"):
        how = "" if run.origin == "slot" else f", {run.origin.replace('_', ' ')}"
        found.append((f"{run.scheduled_for:%d %H:%M}", run.outcome + how))
    return found


def run_of(name: str) -> JobRun:
    return JobRun.objects.get(job=name)


def chunks() -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT job, slot, token, chunk FROM test_chunk ORDER BY slot, chunk, token")
        return cursor.fetchall()


def let_lock_run_out(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_lock SET expires_at = clock_timestamp() - interval '1 ms' WHERE job = %s", [name])


def let_wait_pass(name: str) -> None:
    JobRun.objects.filter(job=name, outcome="waiting").update(due_at=T - 365 * DAY)
