"""The system checks refuse what would fail at 3 a.m."""

from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from django.core.checks import run_checks

from jobs.models import Subscription
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
