"""The operators' page: who may look, what a glance tells, and how it follows; and what machines are answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client

from jobs.alarms import incidents
from jobs.alarms.rules import Condition, Severity
from jobs.gauges.reading import Reading
from jobs.models import Incident
from jobs.schedule import store
from tests.cast import with_app
from tests.jobs.conftest import queue_db, send
from tests.jobs.gauges.conftest import counting, pass_time
from winecellar import machines
from winecellar.accounts.models import User

__all__ = ["counting", "queue_db", "send"]
PAGE = "/admin/jobs/subscription/operations/"
MINUTE = timedelta(minutes=1)
Count = Callable[[], Reading]


@pytest.fixture
def dora(counting: Count) -> Client:
    """She looks after the queue, and may only look."""
    person = User.objects.create_user("dora@winecellar.example", "claret-and-port", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename="view_subscription"))
    client = Client()
    client.force_login(with_app(person))
    return client


def test_a_hot_partition_and_an_open_incident_are_seen_at_a_glance(dora: Client, send: Any, counting: Count) -> None:
    send("hot", "hot")
    pass_time(40 * MINUTE)
    counting()
    late = Condition("queue-late", "strict", Severity.PAGE, "The oldest has waited for 40 min.")
    incidents.record([late], judged=["queue-late"], now=store.now(), opens_after={}, closes_after=MINUTE)
    page = dora.get(PAGE).content.decode()
    assert page.count("op-hot") >= 1
    assert "2 wait, the longest for 40 min" in page
    assert "<strong>Hot</strong>" in page
    assert 'class="op-chip">late<' in page
    assert "Page: queue-late, strict" in page
    assert "/admin/jobs/subscription/runbooks/queue-behind/" in page
    assert "growing" in page
    assert page.index('id="op-strict"') < page.index('id="op-loose"'), "what is late stands first"
    assert page.count("<svg") >= 4
    assert "style=" not in page.split('id="operations"')[1], "the policy forbids it"
    assert "The last 3 h, counted in 1 of 180 minutes: the longest wait was 40 min" in page


def test_the_part_comes_again_only_when_it_has_changed(dora: Client, send: Any, counting: Count) -> None:
    counting()
    etag = dora.get(f"{PAGE}part/")["ETag"]
    assert dora.get(f"{PAGE}part/", headers={"If-None-Match": etag}).status_code == 304
    send("a")
    counting()
    answer = dora.get(f"{PAGE}part/", headers={"If-None-Match": etag})
    assert answer.status_code == 200
    assert "<html" not in answer.content.decode()


def test_only_staff_with_the_permission_look(dora: Client) -> None:
    person = User.objects.get(email="dora@winecellar.example")
    person.user_permissions.clear()
    for path in (PAGE, f"{PAGE}part/"):
        assert dora.get(path).status_code == 403, path
        assert Client().get(path).status_code == 302, path
    runbook = "/admin/jobs/subscription/runbooks/deploy/"
    assert dora.get(runbook).status_code == 200, "what to do is for all of the staff, whatever brought them there"
    assert Client().get(runbook).status_code == 302


def test_the_runbook_is_shown_as_it_stands(dora: Client) -> None:
    page = dora.get("/admin/jobs/subscription/runbooks/queue-behind/").content.decode()
    assert "# Runbook: the queue is behind" in page
    assert dora.get("/admin/jobs/subscription/runbooks/settings/").status_code == 404


def test_an_incidents_page_links_its_runbook(counting: Count) -> None:
    charlie = Client()
    charlie.force_login(with_app(User.objects.create_superuser("charlie@winecellar.example", "an-operators-password")))
    held = Condition("horizon-held", "database", Severity.WARN, "Held.")
    incidents.record([held], judged=["horizon-held"], now=store.now(), opens_after={}, closes_after=MINUTE)
    page = charlie.get(f"/admin/jobs/incident/{Incident.objects.get().pk}/change/").content.decode()
    assert '<a href="/admin/jobs/subscription/runbooks/xmin-horizon/">docs/runbooks/xmin-horizon.md</a>' in page


# --- In a terminal ----------------------------------------------------------------------------------------------


def status(*options: str) -> tuple[str, int]:
    said = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("status", *options, stdout=said)
    return said.getvalue(), int(ended.value.code or 0)


def alive() -> None:
    for kind in ("scheduler", "watchman", "worker"):
        store.beat(kind, f"{kind}:1")


def test_status_says_how_it_stands_and_its_exit_code_says_how_bad(send: Any, counting: Count) -> None:
    alive()
    counting()
    text, code = status()
    assert code == 0, text
    assert "Nothing needs a person." in text
    send("a")
    pass_time(3 * MINUTE)
    counting()
    text, code = status()
    assert code == 1
    assert "WARN  queue-behind, strict" in text
    pass_time(2 * MINUTE)
    counting()
    assert status()[1] == 2
    document, code = status("--json")
    told = json.loads(document)
    assert (told["level"], code) == ("page", 2)
    (waiting,) = [p for p in told["subscriptions"]["strict"]["partitions"] if p["depth"]]
    assert waiting["waiting_seconds"] >= 300
    assert waiting["growing"]


# --- Machines ---------------------------------------------------------------------------------------------------


def test_metrics_are_for_who_has_the_token(counting: Count, settings: Any) -> None:
    settings.METRICS_TOKEN = "a-token"
    for given in (None, "Bearer wrong", "Basic a-token", "a-token", "Bearer "):
        answer = Client().get("/metrics", headers={"Authorization": given} if given else {})
        assert answer.status_code == 401, given
        assert answer["WWW-Authenticate"].startswith("Bearer")
    answer = Client().get("/metrics", headers={"Authorization": "Bearer a-token"})
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    assert 'jobs_partition_depth{partition="0",subscription="strict"} 0.0' in answer.content.decode()
    assert "Set-Cookie" not in answer


def test_without_a_token_metrics_are_for_this_machine_or_not_there(counting: Count, settings: Any) -> None:
    settings.METRICS_TOKEN, settings.METRICS_FROM_LOOPBACK = "", True
    assert Client(REMOTE_ADDR="127.0.0.1").get("/metrics").status_code == 200
    assert Client(REMOTE_ADDR="192.0.2.7").get("/metrics").status_code == 404
    assert Client(REMOTE_ADDR="").get("/metrics").status_code == 404
    through_a_proxy = Client(REMOTE_ADDR="127.0.0.1").get("/metrics", headers={"X-Forwarded-For": "192.0.2.7"})
    assert through_a_proxy.status_code == 404
    settings.METRICS_FROM_LOOPBACK = False
    assert Client(REMOTE_ADDR="127.0.0.1").get("/metrics").status_code == 404


def test_a_probe_by_any_name_gets_a_word_and_no_redirect(db: None, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    for path, word in (("/healthz", "ok"), ("/readyz", "ready")):
        answer = Client().get(path, headers={"Host": "10.0.0.7:8000"})
        assert (answer.status_code, answer.content.decode().strip()) == (200, word)
        assert answer["Cache-Control"] == "no-store"
        assert Client().post(path).status_code == 405


def test_not_ready_has_a_reason_and_health_asks_nobody(
    db: None, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        assert Client().get("/healthz").status_code == 200
    monkeypatch.setattr(machines, "migrated", machines._Migrated())
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'jobs'"
            " AND name = (SELECT max(name) FROM django_migrations WHERE app = 'jobs')"
        )
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"migrations-missing\n")
    with monkeypatch.context() as away:
        away.setattr(connection, "cursor", _away)
        answer = Client().get("/readyz")
        assert (answer.status_code, answer.content) == (503, b"database-away\n")
        assert Client().get("/healthz").status_code == 200


def _away(*_: Any) -> Any:
    raise OperationalError("the server is away")
