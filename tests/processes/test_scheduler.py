"""The real scheduler and watchman processes: killed, told to stop, paused past a lock's life, an hour off."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jobs.models import Incident, JobLock, JobRun, Process
from jobs.schedule import control, store
from tests.jobs.schedule.conftest import DAY, chunks, known_since, schedule
from tests.processes.conftest import Processes, children, is_running, wait_until

__all__ = ["schedule"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]
JOB = "yearly"
UNDER_TEST = {"DJANGO_SETTINGS_MODULE": "tests.jobs.schedule.process_settings", "SCHEDULE_JOBS": JOB}


def start(processes: Processes, *command: str, **environment: str) -> subprocess.Popen[bytes]:
    command = command or ("manage.py", "run_scheduler")
    process = processes.start(*command, **{**UNDER_TEST, **environment})
    wait_until(lambda: "scheduler.started" in processes.log(process) or process.poll() is not None, what="it starts")
    assert process.poll() is None, processes.log(process)
    return process


def ask(schedule: Any) -> None:
    control.run_now(job=schedule[JOB], by="charlie", now=store.now())


def run() -> JobRun:
    return JobRun.objects.get(job=JOB)


def tokens() -> list[int]:
    return [token for _, _, token, _ in chunks()]


LONG = {"SCHEDULE_ACT": "chunks", "SCHEDULE_CHUNKS": "1000"}


def test_a_slot_runs_in_a_process_of_its_own_and_the_scheduler_stops_with_zero(
    schedule: Any, processes: Processes
) -> None:
    known_since(JOB, store.now() - 400 * DAY)
    scheduler = start(processes)
    wait_until(lambda: JobRun.objects.filter(job=JOB, outcome="ran"), what="the slot is caught up")
    assert run().owner.endswith(f":{scheduler.pid}")
    assert "run.finished" in processes.log(scheduler)
    scheduler.send_signal(signal.SIGTERM)
    assert scheduler.wait(timeout=20) == 0
    assert not Process.objects.exists(), "it signed off"


def test_told_to_stop_in_the_middle_it_gives_the_slot_back_and_the_next_one_goes_on(
    schedule: Any, processes: Processes
) -> None:
    first = start(processes, SCHEDULE_ACT="chunks", SCHEDULE_CHUNKS="60")
    ask(schedule)
    wait_until(lambda: len(chunks()) >= 2, what="it is in the middle")
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=20) == 0
    given_back = run()
    assert (given_back.outcome, given_back.attempt) == ("waiting", 0), "a stop is not charged"
    assert JobLock.objects.get(job=JOB).token is None
    start(processes, SCHEDULE_ACT="chunks", SCHEDULE_CHUNKS="60")
    wait_until(lambda: run().outcome == "ran", what="another one finishes it")
    assert [chunk for *_, chunk in chunks()] == list(range(60)), "each chunk once"
    assert len(set(tokens())) == 2


def test_a_job_deaf_to_the_stop_is_ended_within_the_grace_and_given_back(schedule: Any, processes: Processes) -> None:
    scheduler = start(processes, SCHEDULE_ACT="hang")
    ask(schedule)
    wait_until(chunks, what="it hangs")
    scheduler.send_signal(signal.SIGTERM)
    assert scheduler.wait(timeout=20) == 0
    assert (run().outcome, run().attempt) == ("waiting", 0)


def test_a_killed_schedulers_run_is_found_by_its_lock_and_done_by_another(schedule: Any, processes: Processes) -> None:
    victim = start(processes, SCHEDULE_TTL="3", **LONG)
    ask(schedule)
    wait_until(lambda: len(chunks()) >= 2, what="it is in the middle")
    (child,) = children(victim)
    victim.kill()
    victim.wait()
    wait_until(lambda: not is_running(child), what="the run ends with its scheduler")
    written = len(chunks())
    start(processes, SCHEDULE_TTL="3", SCHEDULE_ACT="chunks", SCHEDULE_CHUNKS=str(written + 3))
    wait_until(lambda: run().outcome == "ran", what="the other one finishes it")
    assert (run().attempt, [e["outcome"] for e in run().earlier]) == (2, ["crashed"])
    assert [chunk for *_, chunk in chunks()] == list(range(written + 3))


def test_a_run_paused_past_its_locks_life_wakes_up_and_commits_nothing_more(
    schedule: Any, processes: Processes
) -> None:
    """By hand, so that no scheduler is its parent and kills it when it is found dead."""
    sleeper = processes.start("manage.py", "run_job", JOB, SCHEDULE_TTL="2", **LONG, **UNDER_TEST)
    wait_until(lambda: len(chunks()) >= 2, what="it is in the middle")
    sleeper.send_signal(signal.SIGSTOP)
    old = run().token
    # The new owner's lock lives for longer: on a busy machine it must not lose that too.
    start(processes, SCHEDULE_TTL="10", SCHEDULE_ACT="chunks", SCHEDULE_CHUNKS="200")
    wait_until(lambda: old != run().token and len(set(tokens())) == 2, seconds=60, what="a scheduler took over")
    before = tokens().count(old)
    sleeper.send_signal(signal.SIGCONT)
    assert sleeper.wait(timeout=30) == 1
    assert "run.lock_lost" in processes.log(sleeper)
    wait_until(lambda: run().outcome == "ran", seconds=120, what="the new owner finishes")
    assert tokens().count(old) == before, "not one chunk under the old token"
    assert [chunk for *_, chunk in chunks()] == list(range(200))


def test_a_run_stopped_within_a_chunk_loses_its_session_and_the_lock(schedule: Any, processes: Processes) -> None:
    sleeper = processes.start("manage.py", "run_job", JOB, SCHEDULE_ACT="stop-in-chunk", SCHEDULE_TTL="2", **UNDER_TEST)
    wait_until(lambda: "(in a chunk)" in processes.log(sleeper), what="it is within a chunk")
    wait_until(lambda: Path(f"/proc/{sleeper.pid}/stat").read_text().split(")")[1].split()[0] == "T", what="stopped")
    start(processes, SCHEDULE_TTL="10")  # its own lock must live on a busy machine too
    wait_until(lambda: run().outcome == "ran", seconds=60, what="a scheduler took over")
    sleeper.send_signal(signal.SIGCONT)
    sleeper.wait(timeout=30)
    assert len(chunks()) == 1, "what the sleeper had written in its chunk is gone"


def test_a_run_whose_process_dies_is_tried_again_at_once(schedule: Any, processes: Processes) -> None:
    scheduler = start(processes, SCHEDULE_ACT="exit")
    ask(schedule)
    wait_until(lambda: run().outcome == "ran", what="the second attempt")
    assert [(e["outcome"], e["reason"]) for e in run().earlier] == [("crashed", "its process ended with code 3")]
    assert scheduler.poll() is None


def test_a_run_past_its_time_limit_is_ended_and_has_failed(schedule: Any, processes: Processes) -> None:
    scheduler = start(processes, SCHEDULE_ACT="hang", SCHEDULE_LIMIT="1")
    ask(schedule)
    wait_until(lambda: run().ended_at, what="it is ended")
    assert (run().outcome, run().error_class) == ("failed", "TimeLimitError")
    wait_until(lambda: not children(scheduler), what="its process is gone")


def test_schedulers_whose_hosts_clocks_are_an_hour_off_run_each_slot_once_and_none_early(
    schedule: Any, processes: Processes
) -> None:
    known_since("hourly", store.now() - 400 * DAY)
    for offset in ("3600", "-3600"):
        start(processes, "-m", "tests.processes.shifted", offset, "run_scheduler", SCHEDULE_JOBS="hourly")
    wait_until(lambda: JobRun.objects.filter(job="hourly", outcome="ran"), what="the latest slot ran")
    latest = JobRun.objects.filter(job="hourly").order_by("-scheduled_for")[0]
    assert latest.scheduled_for <= store.now(), "the database's clock rules"
    assert [slot for job, slot, *_ in chunks() if job == "hourly"] == [latest.scheduled_for]


def test_a_scheduler_whose_connections_are_cut_goes_on(schedule: Any, processes: Processes) -> None:
    scheduler = start(processes)
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
        )
    wait_until(lambda: "loop.database_error" in processes.log(scheduler), what="it notices")
    ask(schedule)
    wait_until(lambda: run().outcome == "ran", what="it goes on")


def test_the_watchman_says_that_the_scheduler_died_and_closes_when_it_is_back(
    schedule: Any, processes: Processes
) -> None:
    """Nobody else would: what died cannot say so. Deployments take less than PROCESS_SILENT_AFTER."""
    victim = start(processes)
    wait_until(lambda: Process.objects.filter(kind="scheduler"), what="it beats")
    watchman = processes.start("manage.py", "run_watchman", **UNDER_TEST)
    wait_until(lambda: Process.objects.filter(kind="watchman"), what="the watchman watches")
    os.kill(victim.pid, signal.SIGSTOP)
    incident = wait_until(
        lambda: Incident.objects.filter(alarm="scheduler-silent", opened_at__isnull=False).first(), what="it opens"
    )
    assert (incident.severity, incident.state) == ("page", "open")
    wait_until(lambda: processes.log(watchman).count("incident.opened") == 1, what="it says so, once")
    os.kill(victim.pid, signal.SIGCONT)
    wait_until(lambda: Incident.objects.get(pk=incident.pk).closed_at, what="it closes")
    watchman.send_signal(signal.SIGTERM)
    assert watchman.wait(timeout=20) == 0
