"""Everything that writes, at every one of its statements: the process dies before it, dies after it, or never hears the
answer. What it is about is then as it was, or done; and done once when it has been taken up again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.core.management import get_commands, load_command_class
from django.db import connection
from django.db.models import Max

from jobs import perform
from jobs.dead_letters import redrive
from jobs.dead_letters.acts import ACTS
from jobs.models import AuditEntry
from jobs.subscriptions import load_routes
from pricing.catalogues import refresh, stage
from tests.alerts.receiver import receiving
from tests.catalogues.test_refresh_crash import OneAfterTheOther
from tests.faults import mail_server, page, subjects
from tests.faults.crash import Points, sweep
from tests.faults.subjects import NEW_KEY, SUBJECTS, Subject

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
# Swept by tests of their own, by these names on the page.
ELSEWHERE = {
    "route price-history": "claim and price-history",
    "route alert-matching": "claim and alert-matching",
    "route notification-delivery": "claim and notification-delivery",
    "command run_scheduler": "a scheduled slot",
    "route purchase-payment": "a purchase that goes well",
    "route purchase-mail": "a purchase that goes well",
}
# What writes nothing, or nothing of its own.
EXEMPT = {
    "command run_worker": "writes what its routes write",
    "command status": "only reads",
    "command doctor": "only reads",
    "command journey": "only reads",
    "command migrate": "Django's, each migration in its transaction; with a limit for locks (tests/deployment)",
    "command make_roles": "says all of it each time, in one transaction (tests/deployment/test_roles.py)",
    "command list_feed_keys": "only reads",
    "command list_signing_secrets": "only reads",
    "command load_demo_catalogue": "refused in production; run again it adds what is missing (tests/demo)",
}
KEPT = ("django_migrations", "django_content_type", "auth_permission", "jobs_subscription", "jobs_audit")


class Inline:
    """Performs an effect outside Postgres in the thread that asks for it, so that points come in one order."""

    def __init__(self, **_: Any) -> None: ...

    def submit(self, perform_: Callable[[Any], Any], task: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(perform_(task))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, **_: Any) -> None: ...


@pytest.fixture(autouse=True)
def _one_thread(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(perform, "ThreadPoolExecutor", Inline)
    monkeypatch.setattr(refresh, "Ahead", OneAfterTheOther)
    settings.EMAIL_BACKEND = mail_server.BACKEND
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW_KEY, [settings.SECRET_KEY]
    mail_server.begin(tmp_path / "accepted")
    # Nobody cuts the power here: what a commit waits for is not what is tested.
    options = connection.settings_dict["OPTIONS"]
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {**options, "options": "-c synchronous_commit=off"})
    connection.close()
    monkeypatch.setattr(redrive, "PORTION_SECONDS", 0)
    with receiving(tmp_path, monkeypatch) as there:
        subjects.receiver[:] = [there.url]
        yield
    mail_server.begin(None)
    connection.close()


@pytest.fixture
def wipe(transactional_db: None) -> Iterator[Callable[[], None]]:
    """Empties whatever has rows, past the triggers that forbid it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            " AND NOT relispartition AND NOT relname = ANY(%s) ORDER BY 1",
            [list(KEPT)],
        )
        tables = [name for (name,) in cursor.fetchall()]
    filled = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables)

    def wiped() -> None:
        stage.drop_strays()
        subjects.audit_from[:] = [AuditEntry.objects.aggregate(last=Max("id"))["last"] or 0]
        with connection.cursor() as cursor:
            cursor.execute(filled)
            deletes = "".join(f"DELETE FROM {table};" for (table,) in cursor.fetchall())
            cursor.execute(f"SET session_replication_role = replica; {deletes} RESET session_replication_role;")

    before = list(_subscriptions())
    yield wiped
    wiped()
    with connection.cursor() as cursor:
        for name, partitions, paused_at, batch in before:
            cursor.execute(
                "UPDATE jobs_subscription SET partitions = %s, paused_at = %s, batch = %s WHERE name = %s",
                [partitions, paused_at, batch, name],
            )


def _subscriptions() -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, partitions, paused_at, batch FROM jobs_subscription")
        return cursor.fetchall()


def sweep_writer(subject: Subject, wipe: Callable[[], None]) -> int:
    """How many points it has. Raises for the first at which it is half done, or not done once afterwards."""

    def afresh() -> Any:
        wipe()
        mail_server.forget()
        subject.prepare()
        return subject.state()

    def act(points: Points) -> None:
        mail_server.points = points
        subject.act()

    untouched = afresh()
    subject.act()
    if subject.turns and subject.again:
        subject.again()
    done = subject.state()
    assert untouched != done, "it does nothing that is looked at"

    def not_half_done() -> None:
        now = subject.state()
        assert subject.turns or now in (untouched, done), f"half done: {now}"

    def is_done(where: str) -> None:
        assert subject.state() == done, f"not as it should be after {where}"

    return sweep(
        prepare=afresh,
        act=act,
        check_after_crash=not_half_done,
        recover=subject.again or subject.act,
        check_end=is_done,
    )


@pytest.mark.parametrize("name", list(SUBJECTS))
def test_a_writer_that_dies_or_hears_nothing_at_any_point_is_done_once_when_it_is_taken_up_again(
    name: str, wipe: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    points = sweep_writer(SUBJECTS[name], wipe)
    with capsys.disabled():
        print(f"\ncrash points: {name}: {points}")
    page.hold(name, points)


def test_every_route_is_in_the_sweep() -> None:
    covered = {name.removeprefix("route ") for name in (*SUBJECTS, *ELSEWHERE) if name.startswith("route ")}
    assert covered == set(load_routes())


def test_every_command_is_in_the_sweep_or_writes_nothing() -> None:
    ours = {
        name
        for name, app in get_commands().items()
        if not isinstance(app, str) or app.partition(".")[0] in {"jobs", "pricing", "alerts", "winecellar"}
    }
    covered = {name.split()[1] for name in (*SUBJECTS, *ELSEWHERE, *EXEMPT) if name.startswith("command ")}
    assert covered == ours
    # Each of the ways that one command has to write.
    assert {f"command dead_letters {act}" for act in ACTS} <= set(SUBJECTS)
    parser = load_command_class("jobs", "subscriptions").create_parser("manage.py", "subscriptions")
    (ways,) = [each.choices for each in parser._actions if isinstance(each.choices, dict)]
    assert {f"command subscriptions {way}" for way in ways} <= set(SUBJECTS)


def test_every_admin_action_is_in_the_sweep() -> None:
    offered = {
        f"admin {model._meta.model_name} {action if isinstance(action, str) else action.__name__}"
        for model, site in admin.site._registry.items()
        for action in (site.actions or ())
    }
    offered |= {f"admin deadletter {act}" for act in ACTS} | {"admin redrive stop"}
    covered = {name for name in SUBJECTS if name.startswith("admin ")}
    assert offered - covered == set()
    assert covered - offered == set()


def test_what_is_swept_elsewhere_is_on_the_page_and_so_is_nothing_else() -> None:
    others = {"a week of digests", "a catalogue refresh", "a purchase that is refunded", "buying"}
    others |= {"feed intake", "feed intake of a single price"}
    assert set(page.published()) == set(SUBJECTS) | set(ELSEWHERE.values()) | others
