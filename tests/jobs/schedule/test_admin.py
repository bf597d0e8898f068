"""The schedule and its incidents in the admin: read, paused, run, acknowledged; by those who may."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from jobs.alarms import incidents
from jobs.alarms.rules import Condition, Severity
from jobs.models import Incident, JobRun, ScheduledJob
from jobs.schedule import store
from tests.cast import with_app
from tests.jobs.schedule.conftest import DAY, HOUR, Inline, T, known_since, only, scheduler
from winecellar.accounts.models import User


@pytest.fixture
def charlie(schedule: Any) -> Client:
    client = Client()
    client.force_login(with_app(User.objects.create_superuser("charlie@winecellar.example", "an-operators-password")))
    return client


@pytest.fixture
def dora(schedule: Any) -> Client:
    """She may look."""
    person = User.objects.create_user("dora@winecellar.example", "claret-and-port", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__startswith="view_", content_type__app_label="jobs"))
    client = Client()
    client.force_login(with_app(person))
    return client


def act(client: Client, model: str, action: str, pk: Any) -> str:
    response = client.post(f"/admin/jobs/{model}/", {"action": action, "_selected_action": str(pk)}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def test_a_jobs_page_shows_its_policy_its_next_slots_and_its_durations(charlie: Client, schedule: Any) -> None:
    known_since("nightly-each", T - HOUR)
    scheduler(only(schedule, "nightly-each")).step(T)
    for _ in range(2):
        scheduler(only(schedule, "nightly-each")).step(T + 2 * DAY + HOUR)
    page = charlie.get("/admin/jobs/scheduledjob/nightly-each/change/").content.decode()
    assert "overlap: queue; missed slots: each (at most 2); 3 attempts of at most 1 h" in page
    assert page.count("02:00 UTC") >= 5
    assert page.count("<rect") == 3
    assert "The last 3 runs: median" in page
    assert "ran (missed: caught up)" in page
    assert "style=" not in page.split("<svg")[1].split("</svg>")[0]
    listed = charlie.get("/admin/jobs/scheduledjob/").content.decode()
    assert "2026-03-16 02:00 UTC: ran (missed: caught up)" in listed
    assert "none yet" in listed


def test_every_slot_is_listed_with_what_became_of_it(charlie: Client, schedule: Any) -> None:
    known_since("nightly", T - HOUR)
    scheduler(only(schedule, "nightly")).step(T + 2 * DAY)
    page = charlie.get("/admin/jobs/jobrun/?job=nightly&outcome=missed").content.decode()
    assert "missed: skipped" in page
    assert "2026-03-16 02:00 UTC ran for it" in page
    run = JobRun.objects.filter(outcome="ran").get()
    JobRun.objects.filter(pk=run.pk).update(done=3, total=4, counts={"valued": 2}, attempt=2)
    listed = charlie.get("/admin/jobs/jobrun/?job=nightly&outcome=ran").content.decode()
    assert "3 of 4; valued 2" in listed
    assert "ran, attempt 2" in listed
    assert charlie.get(f"/admin/jobs/jobrun/{run.pk}/change/").status_code == 200
    assert charlie.post(f"/admin/jobs/jobrun/{run.pk}/change/", {"outcome": "failed"}).status_code == 403


def test_an_operator_pauses_resumes_and_runs_now_and_each_is_on_the_audit_log(charlie: Client, schedule: Any) -> None:
    assert ": paused. Its slots pass" in act(charlie, "scheduledjob", "pause", "nightly")
    assert "is paused already" in act(charlie, "scheduledjob", "pause", "nightly")
    assert ScheduledJob.objects.get(name="nightly").paused_at
    assert ": resumed, next at" in act(charlie, "scheduledjob", "resume", "nightly")
    assert "is not paused" in act(charlie, "scheduledjob", "resume", "nightly")
    assert "a scheduler runs the slot of" in act(charlie, "scheduledjob", "run_now", "nightly")
    assert "is under way already" in act(charlie, "scheduledjob", "run_now", "nightly")
    assert [entry.change_message for entry in LogEntry.objects.order_by("id")][:2] == ["Paused.", "Resumed."]
    assert LogEntry.objects.count() == 3
    scheduler(only(schedule, "nightly"), Inline()).step(store.now())
    run = JobRun.objects.get(outcome="ran")
    assert (run.origin, run.asked_by) == ("by_hand", str(User.objects.get().pk))


def test_an_incident_is_acknowledged_once(charlie: Client) -> None:
    away = Condition("scheduler-silent", "scheduler", Severity.PAGE, "No scheduler runs.")
    incidents.record([away], judged=[away.alarm], now=store.now(), opens_after={}, closes_after=HOUR)
    incident = Incident.objects.get()
    assert "No scheduler runs." in charlie.get("/admin/jobs/incident/?state=open").content.decode()
    assert (
        "docs/runbooks/scheduler-dead.md</a>, “scheduler-silent”"
        in charlie.get(f"/admin/jobs/incident/{incident.pk}/change/").content.decode()
    )
    assert "acknowledged." in act(charlie, "incident", "acknowledge", incident.pk)
    assert "needs no acknowledging" in act(charlie, "incident", "acknowledge", incident.pk)
    for state, count in (("open", 0), ("acknowledged", 1), ("closed", 0), ("suspected", 0)):
        page = charlie.get(f"/admin/jobs/incident/?state={state}").content.decode()
        assert page.count("No scheduler runs.") == count, state


def test_who_may_only_look_is_offered_no_action_and_cannot_take_one(dora: Client) -> None:
    page = dora.get("/admin/jobs/scheduledjob/").content.decode()
    assert "run_now" not in page
    dora.post("/admin/jobs/scheduledjob/", {"action": "pause", "_selected_action": "nightly"})
    assert ScheduledJob.objects.get(name="nightly").paused_at is None
    assert "acknowledge" not in dora.get("/admin/jobs/incident/").content.decode().lower().replace("acknowledged", "")
