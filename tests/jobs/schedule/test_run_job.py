"""`manage.py run_job`: by hand, through the same lock, fence and rows."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs.models import JobRun, ScheduledJob
from jobs.schedule import control, store
from tests.jobs.schedule.conftest import DAY, HOUR, Held, T, chunks, known_since, only, run_of, scheduler, told
from tests.jobs.schedule.under_test import acts


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("run_job", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_it_runs_the_latest_slot_or_those_asked_for_in_order_and_back_fills_the_past(schedule: Any) -> None:
    latest = store.now()
    assert "nightly of" in run("nightly")
    assert JobRun.objects.get().scheduled_for <= latest
    JobRun.objects.all().delete()
    made = len(chunks())
    assert run("nightly", "--for", "2026-03-14") == "nightly of 2026-03-14 02:00 UTC: ran\n"
    run("nightly", "--from", "2026-02-27", "--to", "2026-03-01")
    run("nightly", "--for", "2026-03-16T02:00Z")
    assert [f"{r.scheduled_for:%m-%d %H:%M}" for r in JobRun.objects.order_by("id")] == [
        "03-14 02:00",
        "02-27 02:00",
        "02-28 02:00",
        "03-01 02:00",
        "03-16 02:00",
    ]
    assert {(r.outcome, r.origin, r.asked_by) for r in JobRun.objects.all()} == {("ran", "by_hand", "command")}
    assert len(chunks()) == made + 5
    assert ScheduledJob.objects.get(name="nightly").noted_until > T, "what was back-filled moved nothing back"


def test_a_slot_that_ran_runs_again_and_what_it_came_to_before_is_kept(schedule: Any) -> None:
    run("nightly", "--for", "2026-03-14")
    run("nightly", "--for", "2026-03-14")
    again = run_of("nightly")
    assert (again.outcome, again.attempt) == ("ran", 1)
    assert [(e["outcome"], e["attempt"]) for e in again.earlier] == [("ran", 1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such job: nonsense. There are: hourly, queued, nightly,"),
        (["nightly", "--for", "2026-03-14T03:00Z"], r"no slot there; the next one is 2026-03-15T02:00Z"),
        (["nightly", "--for", "2099-01-01"], "2099-01-01T02:00Z has not come yet; it is 20"),
        (["nightly", "--for", "2026-03-14T02:00"], "needs its zone"),
        (["nightly", "--for", "14.3.2026"], "14.3.2026"),
        (["nightly", "--from", "2026-03-14"], "Give --for alone, or --from and --to together"),
        (["nightly", "--for", "2026-03-14", "--to", "2026-03-14"], "Give --for alone"),
        (["nightly", "--from", "2026-03-14", "--to", "2026-03-12"], "2026-03-12 is before 2026-03-14"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(schedule: Any, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*arguments)
    assert not JobRun.objects.exists()


def test_while_the_job_runs_elsewhere_it_says_where_and_changes_nothing(schedule: Any) -> None:
    known_since("nightly", T - HOUR)
    scheduler(only(schedule, "nightly"), Held()).step(T)
    with pytest.raises(CommandError, match=r"nightly runs already: 2026-03-14 02:00 UTC, by host:1\. Wait"):
        run("nightly", "--for", "2026-03-13")
    assert told("nightly") == [("14 02:00", "running")]


def test_by_hand_there_is_no_second_attempt_and_the_exit_says_that_not_all_ran(schedule: Any) -> None:
    acts["nightly"] = lambda run: (_ for _ in ()).throw(RuntimeError("bad night"))
    with pytest.raises(CommandError, match="Not all of it ran"):
        run("nightly", "--from", "2026-03-13", "--to", "2026-03-14")
    assert told("nightly") == [("13 02:00", "failed, by hand"), ("14 02:00", "failed, by hand")]


def test_what_is_asked_for_in_the_admin_the_scheduler_runs_even_if_it_ran_or_is_paused(schedule: Any) -> None:
    known_since("nightly", T - HOUR)
    one = scheduler(only(schedule, "nightly"))
    one.step(T)
    control.pause(job="nightly")
    assert control.run_now(job=schedule["nightly"], by="charlie", now=T + HOUR) == T
    assert control.run_now(job=schedule["nightly"], by="dora", now=T + HOUR) is None, "it waits already"
    one.step(T + HOUR)
    assert told("nightly") == [("14 02:00", "ran, by hand")]
    assert run_of("nightly").asked_by == "charlie"
    assert len(chunks()) == 2


def test_a_claimed_run_that_was_taken_away_meanwhile_does_nothing(schedule: Any) -> None:
    known_since("nightly", T - DAY)
    with pytest.raises(SystemExit) as ended:
        run("nightly", "--claimed", "1:999999999")
    assert ended.value.code == 0
    assert chunks() == []
