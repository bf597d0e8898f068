"""The crash-point sweep over a scheduled slot, from noting it to its ending: whatever statement its processes die at,
the slot has one row, each chunk is committed once, and the next scheduler finishes it."""

from typing import Any

import pytest
from django.db import connection

from jobs.models import JobLock, JobRun
from jobs.schedule import store
from jobs.schedule.crashes import reap
from jobs.schedule.run import Run
from tests.faults import page
from tests.faults.crash import Points, sweep
from tests.jobs.schedule.conftest import (
    DAY,
    TABLES,
    chunks,
    known_since,
    let_lock_run_out,
    let_wait_pass,
    only,
    schedule,
    scheduler,
)
from tests.jobs.schedule.under_test import acts, write_chunk

__all__ = ["schedule"]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
CHUNKS = 3


def work(run: Run) -> None:
    """Goes on from where an earlier attempt got to."""
    for chunk in range(len(chunks()), CHUNKS):
        write_chunk(run, chunk)
        run.progress(chunk + 1, CHUNKS)


def test_a_slot_dies_at_every_point(schedule: Any, capsys: pytest.CaptureFixture[str]) -> None:
    acts["yearly"] = work
    jobs = only(schedule, "yearly")

    def prepare() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {', '.join(TABLES)}, test_chunk")
        store.insert_missing_jobs(list(jobs.values()))
        known_since("yearly", store.now() - 400 * DAY)

    def act(points: Points) -> None:
        scheduler(jobs).step(store.now())

    def one_row_and_its_lock() -> None:
        runs = list(JobRun.objects.all())
        assert len(runs) <= 1
        lock = JobLock.objects.get()
        assert [run.token for run in runs if run.outcome == "running"] == ([lock.token] if lock.token else [])
        assert [chunk for *_, chunk in chunks()] == list(range(len(chunks())))

    def recover() -> None:
        if JobLock.objects.get().token:
            let_lock_run_out("yearly")
        reap(jobs)
        let_wait_pass("yearly")
        scheduler(jobs).step(store.now())

    def finished_once(where: str) -> None:
        run = JobRun.objects.get()
        assert run.outcome == "ran", where
        assert run.attempt <= 2, where
        assert [chunk for *_, chunk in chunks()] == list(range(CHUNKS)), where
        assert JobLock.objects.get().token is None, where

    points = sweep(
        prepare=prepare, act=act, check_after_crash=one_row_and_its_lock, recover=recover, check_end=finished_once
    )
    with capsys.disabled():
        print(f"\ncrash points: a scheduled slot: {points}")
    page.hold("a scheduled slot", points)
