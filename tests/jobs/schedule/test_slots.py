"""Each nominal slot has one row that says what became of it: on time, late, paused, overlapping, or long missed."""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from jobs.models import JobRun, ScheduledJob
from jobs.schedule import control, store
from jobs.schedule.noting import note_due
from tests.jobs.schedule.conftest import (
    DAY,
    HOUR,
    MINUTE,
    Held,
    T,
    chunks,
    known_since,
    only,
    scheduler,
    told,
)


def test_a_slot_runs_once_when_its_time_comes(schedule: Any) -> None:
    known_since("nightly", T - HOUR)
    one = scheduler(only(schedule, "nightly"))
    assert one.step(T - MINUTE) <= 5
    assert told("nightly") == []
    for seconds in (0, 1, 5, 3600):
        one.step(T.replace(second=seconds % 60) + (HOUR if seconds == 3600 else 0 * HOUR))
    assert told("nightly") == [("14 02:00", "ran")]
    run = JobRun.objects.get()
    assert run.attempt == 1
    assert run.duration is not None


def test_the_step_waits_for_the_next_slot_but_never_longer_than_the_poll(schedule: Any) -> None:
    one = scheduler(only(schedule, "nightly"))
    assert one.step(T - 2 * MINUTE) == 5
    assert one.step(T.replace(hour=1, minute=59, second=58)) == 2


def test_a_schedule_first_seen_now_back_fills_nothing(schedule: Any) -> None:
    now = store.now()
    scheduler(schedule).step(now)
    assert not JobRun.objects.filter(scheduled_for__lt=now - MINUTE).exists()


@pytest.mark.parametrize(
    ("name", "back_at", "expected"),
    [
        # Dead for three slots, back in time for the last or long after it.
        ("nightly", 3 * DAY + 3 * MINUTE, ["missed", "missed", "ran"]),
        ("nightly", 3 * DAY + 3 * HOUR, ["missed", "missed", "ran, caught up"]),
        ("nightly-skip", 3 * DAY + 3 * HOUR, ["missed", "missed", "missed"]),
        ("nightly-each", 3 * DAY + 3 * HOUR, ["missed", "ran, caught up", "ran, caught up"]),
        ("nightly-each", 4 * DAY + MINUTE, ["missed", "ran, caught up", "ran, caught up", "ran"]),
    ],
)
def test_slots_missed_while_no_scheduler_ran_are_treated_as_written(
    schedule: Any, name: str, back_at: Any, expected: list[str]
) -> None:
    known_since(name, T + MINUTE)
    one = scheduler(only(schedule, name))
    for _ in range(5):
        one.step(T + back_at)
    assert [outcome for _, outcome in told(name)] == expected
    assert [slot for slot, _ in told(name)] == [f"{15 + n} 02:00" for n in range(len(expected))]


def test_after_three_days_down_every_minute_has_its_row_and_the_latest_runs_once(schedule: Any) -> None:
    """Others gave up for good after a hundred missed slots."""
    known_since("minutely", T)
    one = scheduler(only(schedule, "minutely"))
    while one.step(T + 3 * DAY) == 0:
        pass
    assert JobRun.objects.count() == 3 * 24 * 60
    assert [(r.scheduled_for, r.outcome) for r in JobRun.objects.exclude(outcome="missed")] == [(T + 3 * DAY, "ran")]
    assert JobRun.objects.filter(outcome="missed", reason="").count() == 0


def test_a_deploy_freeze_over_two_o_clock_is_caught_up_when_it_ends(schedule: Any) -> None:
    known_since("nightly", T - DAY + HOUR)
    before = scheduler(only(schedule, "nightly"))
    before.step(T - 10 * MINUTE)
    after = scheduler(only(schedule, "nightly"))
    after.step(T + 20 * MINUTE)
    assert told("nightly") == [("14 02:00", "ran, caught up")]


@pytest.mark.parametrize(
    ("name", "during", "after"),
    [
        ("hourly", ["running", "skipped"], ["ran", "skipped"]),
        ("queued", ["running", "waiting"], ["ran", "ran"]),
    ],
)
def test_a_run_of_seventy_minutes_meets_the_next_slot(
    schedule: Any, name: str, during: list[str], after: list[str]
) -> None:
    known_since(name, T - MINUTE)
    held = Held()
    one = scheduler(only(schedule, name), held)
    one.step(T)
    one.step(T + HOUR)
    assert [outcome for _, outcome in told(name)] == during
    assert len(held.runs) == 1, "one run of a job at a time"
    if name == "hourly":
        assert JobRun.objects.get(outcome="skipped").reason == "still running: 2026-03-14 02:00 UTC"
    held.end()
    one.step(T + 70 * MINUTE)
    while held.runs:
        held.end()
    assert [outcome for _, outcome in told(name)] == after
    one.step(T + 2 * HOUR)
    assert len(held.runs) == 1, "the slot after that runs on time"


def test_a_clock_that_steps_two_minutes_back_and_forth_runs_each_slot_once(schedule: Any) -> None:
    known_since("nightly", T - HOUR)
    one = scheduler(only(schedule, "nightly"))
    for minutes in (-2, 0, -2, 1, -1, 0, 2, 0, 4):
        one.step(T + minutes * MINUTE)
    assert told("nightly") == [("14 02:00", "ran")]


def test_a_clock_that_steps_an_hour_ahead_and_back_runs_each_slot_once(schedule: Any) -> None:
    known_since("hourly", T - MINUTE)
    one = scheduler(only(schedule, "hourly"))
    for hours in (0, 1, 0, 0.5, 1, 0.9, 2, 1):
        one.step(T + hours * HOUR)
    assert told("hourly") == [("14 02:00", "ran"), ("14 03:00", "ran"), ("14 04:00", "ran")]


def in_two_threads(act: Callable[[threading.Barrier], None]) -> None:
    barrier = threading.Barrier(2)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            act(barrier)
        except BaseException as error:
            errors.append(error)
            barrier.abort()
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_two_schedulers_race_for_fifty_slots_and_each_runs_once(schedule: Any) -> None:
    known_since("minutely", T)

    def race(barrier: threading.Barrier) -> None:
        one = scheduler(only(schedule, "minutely"))
        for n in range(1, 51):
            barrier.wait(timeout=30)
            one.step(T + n * MINUTE)
            one.step(T + n * MINUTE)

    in_two_threads(race)
    assert [(slot, chunk) for _, slot, _, chunk in chunks()] == [(T + n * MINUTE, 0) for n in range(1, 51)]
    assert {(r.outcome, r.attempt) for r in JobRun.objects.all()} == {("ran", 1)}


def test_two_schedulers_share_a_queue_of_fifty_slots_and_never_run_two_at_once(schedule: Any) -> None:
    store.ask("queued", [T + n * HOUR for n in range(50)], by="charlie")

    def share(barrier: threading.Barrier) -> None:
        one = scheduler(only(schedule, "queued"))
        barrier.wait(timeout=30)
        while JobRun.objects.filter(outcome="waiting").exists():
            one.step(T)

    in_two_threads(share)
    runs = list(JobRun.objects.order_by("started_at"))
    assert [run.outcome for run in runs] == ["ran"] * 50
    assert all(before.ended_at <= after.started_at for before, after in itertools.pairwise(runs))
    assert len(chunks()) == 50


def test_the_schema_itself_refuses_a_second_row_for_a_slot_and_a_second_run_of_a_job(schedule: Any) -> None:
    known_since("queued", T - MINUTE)
    scheduler(only(schedule, "queued"), Held()).step(T)
    run = JobRun.objects.get()
    for slot, problem in ((T, "jobs_run_one_per_slot"), (T + HOUR, "jobs_run_one_running")):
        run.pk, run.scheduled_for = None, slot
        with pytest.raises(IntegrityError, match=problem), transaction.atomic():
            run.save(force_insert=True)


def test_a_paused_jobs_slots_pass_with_a_row_that_says_so_and_are_not_caught_up(schedule: Any) -> None:
    known_since("nightly", T - HOUR)
    one = scheduler(only(schedule, "nightly"))
    assert control.pause(job="nightly")
    assert not control.pause(job="nightly"), "it was paused already"
    one.step(T)
    one.step(T + DAY + HOUR)
    assert control.resume(job="nightly")
    one.step(T + DAY + 2 * HOUR)
    assert told("nightly") == [("14 02:00", "paused"), ("15 02:00", "paused")]
    one.step(T + 2 * DAY)
    assert told("nightly")[-1] == ("16 02:00", "ran")


def test_a_slot_that_still_waits_gives_way_to_the_next_one_of_a_job_that_needs_only_the_latest(schedule: Any) -> None:
    known_since("nightly", T - HOUR)
    note_due(schedule["nightly"], now=T)  # noted, and then every scheduler died
    one = scheduler(only(schedule, "nightly"))
    one.step(T + 3 * DAY + HOUR)
    assert [outcome for _, outcome in told("nightly")] == ["missed", "missed", "missed", "ran, caught up"]
    assert JobRun.objects.get(scheduled_for=T).reason == "2026-03-17 02:00 UTC came first"


def test_a_schedule_that_changes_begins_anew_and_a_dropped_one_stops(schedule: Any) -> None:
    known_since("nightly", T - HOUR)
    job = schedule["nightly"]
    changed = [type(job)(**{**job.__dict__, "cron": "0 5 * * *"})]
    before = store.now()
    store.follow_code(changed)
    row = ScheduledJob.objects.get(name="nightly")
    assert row.cron == "0 5 * * *"
    assert row.noted_until >= before, "slots it would have had before are nobody's"
    assert ScheduledJob.objects.get(name="hourly").retired_at is not None
    known_since("hourly", T - HOUR)
    scheduler(schedule).step(T + 4 * HOUR)
    assert not JobRun.objects.filter(job="hourly").exists()
