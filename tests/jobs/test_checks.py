"""The system checks refuse what would fail at 3 a.m."""

from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from django.core.checks import run_checks

from jobs.models import ScheduledJob, Subscription
from jobs.schedule.declared import CatchUp, Job, Overlap, Zone
from jobs.subscriptions import External, Route


def ids() -> set[str | None]:
    return {message.id for message in run_checks()}


def test_the_project_as_it_is_passes() -> None:
    assert not {i for i in ids() if i and i.startswith("jobs.")}


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("TIME_ZONE", "Europe/Paris", "jobs.E001"),
        ("USE_TZ", False, "jobs.E001"),
        ("HANDLER_TIME_LIMIT", timedelta(seconds=30), "jobs.E002"),
        ("LEDGER_RETENTION", timedelta(minutes=2), "jobs.E003"),
        ("DEAD_LETTER_RETENTION", timedelta(days=6), "jobs.E004"),
        ("ALARM_WEBHOOK_SECRET", "whsec_not base64", "jobs.E019"),
        ("ALARM_WARN_SHARE", 0.9, "jobs.E020"),
    ],
)
def test_settings_that_contradict_a_promise_are_refused(settings: Any, name: str, value: Any, check: str) -> None:
    setattr(settings, name, value)
    assert check in ids()


@pytest.mark.django_db
def test_a_subscription_without_a_route_is_said_when_the_database_is_checked() -> None:
    Subscription.objects.create(name="forgotten", message_types=["t.x"], ordered=True, partitions=1)
    messages = [m for m in run_checks(databases=["default"]) if m.id == "jobs.W001"]
    assert [m.msg for m in messages] == ["The subscription 'forgotten' has no route."]


def nothing(*_: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("routes", "check"),
    [
        ([Route("a", ("t.x",), nothing, ordered=True), Route("a", ("t.y",), nothing, ordered=True)], "jobs.E005"),
        ([Route("a", ("do_x",), nothing, ordered=True), Route("b", ("do_x",), nothing, ordered=True)], "jobs.E006"),
        ([Route("a", ("do_x",), External(nothing, nothing, nothing, at_once=1), ordered=True)], "jobs.E007"),
        ([Route("a", ("do_x",), nothing, ordered=True, partitions=0)], "jobs.E008"),
    ],
)
def test_routes_that_cannot_work_are_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch, routes: list[Route], check: str
) -> None:
    module = ModuleType("routes_under_test")
    module.ROUTES = routes  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "routes_under_test", module)
    settings.QUEUE_ROUTES = "routes_under_test"
    assert check in ids()


def job(name: str = "nightly", cron: str = "0 2 * * *", **changes: Any) -> Job:
    return Job(
        name,
        cron,
        nothing,
        **{
            "lock_ttl": timedelta(minutes=1),
            "overlap": Overlap.SKIP,
            "catch_up": CatchUp.latest(),
            "heartbeat": timedelta(hours=26),
            "time_limit": timedelta(hours=1),
            **changes,
        },
    )


@pytest.mark.parametrize(
    ("jobs", "check"),
    [
        ([job(), job()], "jobs.E009"),
        ([job(zone=Zone.LOCAL)], "jobs.E010"),
        ([job(cron="CRON_TZ=Europe/Paris 0 2 * * *")], "jobs.E011"),
        ([job(cron="0 2 13 * 5")], "jobs.E011"),
        ([job(lock_ttl=timedelta(0))], "jobs.E012"),
        ([job(lock_ttl=timedelta(hours=1))], "jobs.E012"),
        ([job(heartbeat=timedelta(hours=24))], "jobs.E013"),
        ([job("Nightly valuation")], "jobs.E014"),
        ([job(attempts=0)], "jobs.E014"),
        ([job(time_limit=timedelta(0))], "jobs.E014"),
        ([job()], None),
    ],
)
def test_schedules_that_cannot_work_are_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch, jobs: list[Job], check: str | None
) -> None:
    module = ModuleType("schedule_under_test")
    module.SCHEDULE = jobs  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "schedule_under_test", module)
    settings.SCHEDULE = "schedule_under_test"
    assert {i for i in ids() if i and i.startswith("jobs.")} == ({check} if check else set())


@pytest.mark.django_db
def test_a_cron_that_nobody_migrated_is_said_when_the_database_is_checked() -> None:
    ScheduledJob.objects.filter(name="ledger-purge").update(cron="0 9 * * *")
    messages = [m for m in run_checks(databases=["default"]) if m.id == "jobs.W002"]
    assert [m.msg for m in messages] == ["The job 'ledger-purge' runs by '0 9 * * *', and the code says '10 * * * *'."]
