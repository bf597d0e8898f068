"""An attempt from claim to ending: chunks under the fence, failures, crashes, stops, time limits."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection

from jobs.errors import LockLostError, PermanentError, StoppedError, TimeLimitError
from jobs.models import JobLock, JobRun
from jobs.schedule import control, store
from jobs.schedule.alive import KeepAlive
from jobs.schedule.crashes import reap
from jobs.schedule.perform import Ending, perform
from jobs.schedule.run import Run
from tests.jobs.schedule.conftest import (
    DAY,
    HOUR,
    Held,
    T,
    chunks,
    known_since,
    let_lock_run_out,
    let_wait_pass,
    only,
    run_of,
    scheduler,
    told,
)
from tests.jobs.schedule.under_test import acts, write_chunk


@pytest.fixture
def begin(schedule: Any) -> Callable[[], Run]:
    """Begin the yearly job's slot, now, as a scheduler does."""
    known_since("yearly", store.now() - 400 * DAY)
    held = Held()

    def begin() -> Run:
        let_wait_pass("yearly")
        scheduler(only(schedule, "yearly"), held).step(store.now())
        return held.runs.pop()[1]

    return begin


def test_whoever_lost_the_lock_commits_nothing_more(schedule: Any, begin: Any) -> None:
    old = begin()
    write_chunk(old, 1)
    let_lock_run_out("yearly")
    new = begin()
    assert new.claimed.token > old.claimed.token
    with pytest.raises(LockLostError):
        write_chunk(old, 2)
    with pytest.raises(LockLostError):
        old.progress(2)
    assert not store.finish(old.claimed, store.Outcome.RAN)
    assert not store.give_back(old.claimed, store.Outcome.FAILED)
    assert not store.renew(old.claimed, ttl=HOUR)
    write_chunk(new, 2)
    assert store.finish(new.claimed, store.Outcome.RAN)
    assert [(token, chunk) for *_, token, chunk in chunks()] == [(old.claimed.token, 1), (new.claimed.token, 2)]
    run = run_of("yearly")
    assert (run.outcome, run.attempt) == ("ran", 2)
    assert [(e["attempt"], e["outcome"], e["reason"]) for e in run.earlier] == [(1, "crashed", "its lock ran out")]


def test_nobody_takes_the_lock_over_while_a_chunk_is_open_and_it_can_be_renewed_meanwhile(
    schedule: Any, begin: Any
) -> None:
    run = begin()
    seen: list[Any] = []

    def look() -> None:
        let_lock_run_out("yearly")
        seen.append(reap(schedule))
        seen.append(store.begin_due(schedule["yearly"], owner="another"))
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
        seen.append(store.renew(run.claimed, ttl=HOUR))
        let_lock_run_out("yearly")
        connection.close()

    with run.fenced():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO test_chunk VALUES ('yearly', %s, 0, 0)", [run.scheduled_for])
    assert seen == [[], None, True]
    assert len(chunks()) == 1
    assert [claimed.token for claimed in reap(schedule)] == [run.claimed.token], "once it is over, it can be taken"


def test_the_server_ends_a_chunk_that_outlives_the_time_limit(schedule: Any, begin: Any) -> None:
    run = begin()
    run._ends_at = time.monotonic() + 0.2
    with pytest.raises(OperationalError) as ended, run.fenced(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(30)")
    assert ended.value.__cause__ is not None
    assert getattr(ended.value.__cause__, "sqlstate", "") == "57014"
    time.sleep(max(0.0, run.remaining().total_seconds()))
    with pytest.raises(TimeLimitError), run.fenced():
        pass


def test_a_chunk_inside_a_transaction_is_refused(begin: Any) -> None:
    from django.db import transaction

    run = begin()
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic(), run.fenced():
        pass


def test_a_failed_attempt_waits_and_goes_again_and_the_third_is_the_last(schedule: Any, begin: Any) -> None:
    acts["yearly"] = lambda run: (_ for _ in ()).throw(RuntimeError(f"bad \x00 byte in attempt {run.attempt}"))
    endings = []
    for _ in range(3):
        endings.append(perform(schedule["yearly"], begin()))
        waiting = run_of("yearly")
        assert (waiting.outcome == "waiting") == (waiting.due_at > store.now()) == (waiting.attempt < 3)
    assert endings == [Ending.AGAIN, Ending.AGAIN, Ending.FAILED]
    run = run_of("yearly")
    assert (run.outcome, run.attempt, run.error_class) == ("failed", 3, "RuntimeError")
    assert run.reason == "bad � byte in attempt 3", "a failure can always be written"
    assert [e["reason"] for e in run.earlier] == ["bad � byte in attempt 1", "bad � byte in attempt 2"]
    assert JobLock.objects.get(job="yearly").token is None


@pytest.mark.parametrize(
    ("error", "ending"),
    [(PermanentError("never"), Ending.FAILED), (SystemExit(3), Ending.AGAIN), (RecursionError(), Ending.AGAIN)],
)
def test_what_can_never_succeed_is_not_tried_again_and_no_exception_escapes(
    schedule: Any, begin: Any, error: BaseException, ending: Ending
) -> None:
    def fail(run: Run) -> None:
        raise error

    acts["yearly"] = fail
    assert perform(schedule["yearly"], begin()) is ending
    assert JobLock.objects.get(job="yearly").token is None


def test_a_failure_whose_successor_has_come_is_not_tried_again(schedule: Any) -> None:
    known_since("hourly", T - HOUR / 2)
    acts["hourly"] = lambda run: (_ for _ in ()).throw(RuntimeError("bad"))
    scheduler(only(schedule, "hourly")).step(T)  # the database's clock is months past the next slot
    assert told("hourly") == [("14 02:00", "failed")]


def test_a_run_told_to_stop_ends_between_chunks_and_goes_back_uncharged(schedule: Any, begin: Any) -> None:
    def stop_after_one(run: Run) -> None:
        write_chunk(run, run.attempt)
        run.stopping = True
        write_chunk(run, 99)

    acts["yearly"] = stop_after_one
    assert perform(schedule["yearly"], begin()) is Ending.STOPPED
    run = run_of("yearly")
    assert (run.outcome, run.attempt, run.earlier) == ("waiting", 0, [])
    assert [chunk for *_, chunk in chunks()] == [1]
    del acts["yearly"]
    assert perform(schedule["yearly"], begin()) is Ending.RAN


def test_a_run_is_renewed_for_as_long_as_its_handler_works(schedule: Any, begin: Any) -> None:
    """Rescue sooner than the job is long was how others ran a night's work three times."""
    run = begin()
    job = replace(schedule["yearly"], lock_ttl=timedelta(seconds=1))
    before = JobLock.objects.get(job="yearly")
    with KeepAlive(job, run, may_exit=False):
        deadline = time.monotonic() + 20
        renewed = 0
        last = before.expires_at
        while renewed < 3:
            assert time.monotonic() < deadline
            expires = JobLock.objects.get(job="yearly").expires_at
            renewed += expires != last
            last = expires
        assert reap(schedule) == []
        # Somebody else has it from here on: the thread notices, and the run is told before its next chunk.
        let_lock_run_out("yearly")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_lock SET token = nextval('jobs_lock_token') WHERE job = 'yearly'")
        while not run.lost:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with pytest.raises(LockLostError, match="was lost"):
        run.go_on()


def test_progress_and_counts_stay_with_the_run(schedule: Any, begin: Any) -> None:
    def count(run: Run) -> None:
        run.progress(10, 20, valued=9, left_out=1)
        run.progress(20, 20, valued=18, left_out=2)

    acts["yearly"] = count
    assert perform(schedule["yearly"], begin()) is Ending.RAN
    run = run_of("yearly")
    assert (run.done, run.total, run.counts) == (20, 20, {"valued": 18, "left_out": 2})


@pytest.mark.parametrize(
    ("name", "expected", "goes_on"),
    [("nightly", "crashed", T + 2 * DAY), ("nightly-skip", "crashed", None), ("nightly-each", "waiting", T)],
)
def test_a_crash_found_after_its_successors_time_is_treated_by_the_jobs_policy(
    schedule: Any, name: str, expected: str, goes_on: datetime | None
) -> None:
    """Every scheduler died in the middle of a run, and came back days later."""
    known_since(name, T - HOUR)
    scheduler(only(schedule, name), Held()).step(T)
    let_lock_run_out(name)
    held = Held()
    assert [c.scheduled_for for c in reap(schedule)] == [T]
    run = JobRun.objects.get()
    assert run.outcome == expected
    let_wait_pass(name)
    scheduler(only(schedule, name), held).step(T + 2 * DAY + HOUR)
    assert [run.scheduled_for for _, run in held.runs] == ([goes_on] if goes_on else [])


def test_a_crashing_slot_is_given_up_after_its_attempts(schedule: Any, begin: Any) -> None:
    for _ in range(3):
        begin()
        let_lock_run_out("yearly")
        reap(schedule)
    run = run_of("yearly")
    assert (run.outcome, run.attempt, len(run.earlier)) == ("crashed", 3, 2)


def test_a_scheduler_kills_its_own_child_whose_run_was_found_dead(schedule: Any) -> None:
    known_since("yearly", store.now() - 400 * DAY)
    held = Held()
    one = scheduler(only(schedule, "yearly"), held)
    one.step(store.now())
    let_lock_run_out("yearly")
    one.step(store.now())
    assert held.killed == [held.runs[0][1].claimed.token]


def test_unknown_jobs_of_newer_code_are_left_to_newer_schedulers(schedule: Any) -> None:
    known_since("nightly", T - HOUR)
    scheduler(only(schedule, "nightly"), Held()).step(T)
    let_lock_run_out("nightly")
    scheduler(only(schedule, "hourly")).step(T)
    assert run_of("nightly").outcome == "running"


def test_the_outside_monitor_hears_of_start_success_and_failure(
    schedule: Any, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr("jobs.monitor._ping", heard.append)
    acts["yearly"] = lambda run: (_ for _ in ()).throw(RuntimeError("not yet"))
    perform(schedule["yearly"], begin())
    acts["yearly"] = lambda run: (_ for _ in ()).throw(PermanentError("never"))
    perform(schedule["yearly"], begin())
    assert heard == ["yearly/start", "yearly/start", "yearly/fail"], "a failure that is tried again is none yet"
    del acts["yearly"]
    control.run_now(job=schedule["yearly"], by="charlie", now=store.now())
    perform(schedule["yearly"], begin())
    assert heard[3:] == ["yearly/start", "yearly"]


def test_stopped_error_is_not_swallowed_by_a_fence(begin: Any) -> None:
    run = begin()
    run.stopping = True
    with pytest.raises(StoppedError), run.fenced():
        pass
