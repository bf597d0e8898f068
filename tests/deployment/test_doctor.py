"""The doctor names each thing that is broken, and says what to do. Every test breaks one thing and mends it again."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.utils import timezone

from jobs.models import Delivery, Incident, Process, Subscription
from jobs.sync import sync_after_migrate
from tests.deployment.conftest import PREFIX
from winecellar.deployment.doctor import code, look, outside, rights, schema, server, work
from winecellar.deployment.doctor.finding import Finding, Level, exit_code
from winecellar.deployment.grants import make_roles
from winecellar.deployment.roles import Role, name

pytestmark = pytest.mark.django_db
COMMITS = pytest.mark.django_db(transaction=True)
Check = Callable[[], Iterator[Finding]]


def sql(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def broken(how: str, mend: str) -> Iterator[None]:
    sql(how)
    try:
        yield
    finally:
        sql(mend)


@contextmanager
def read_only() -> Iterator[None]:
    """Whatever would change something fails."""
    with broken("SET default_transaction_read_only = on", "RESET default_transaction_read_only"):
        yield


def worst(check: Check) -> Finding:
    order = [Level.OK, Level.WARN, Level.FAIL]
    return max(check(), key=lambda finding: order.index(finding.level))


def assert_names(check: Check, level: Level, *words: str) -> None:
    found = [finding for finding in check() if finding.level == level and all(word in finding.says for word in words)]
    assert found, [finding.says for finding in check()]
    assert all(finding.do for finding in found)


@pytest.fixture
def well(settings: Any) -> None:
    """A deployment in which everything runs, as far as a test has one."""
    sync_after_migrate()
    now = timezone.now()
    for kind in ("scheduler", "watchman"):
        Process.objects.update_or_create(kind=kind, owner="host:1", defaults={"started_at": now, "beat_at": now})


def test_of_a_deployment_that_is_well_nothing_is_said(well: None) -> None:
    findings = look()
    assert [finding for finding in findings if finding.level != Level.OK] == []
    assert len({finding.check for finding in findings}) >= 17, "everything was looked at"


@pytest.mark.parametrize(
    ("check", "how", "mend", "level", "words"),
    [
        (
            schema.triggers,
            "ALTER TABLE jobs_audit DISABLE TRIGGER jobs_audit_row",
            "ALTER TABLE jobs_audit ENABLE ALWAYS TRIGGER jobs_audit_row",
            Level.FAIL,
            ("jobs_audit_row", "does not fire"),
        ),
        (
            schema.triggers,
            "ALTER TABLE jobs_audit ENABLE TRIGGER jobs_audit_row",  # fires, but not for replication's role
            "ALTER TABLE jobs_audit ENABLE ALWAYS TRIGGER jobs_audit_row",
            Level.FAIL,
            ("jobs_audit_row",),
        ),
        (
            schema.drift,
            "ALTER TABLE pricing_wine RENAME COLUMN region TO regio",
            "ALTER TABLE pricing_wine RENAME COLUMN regio TO region",
            Level.FAIL,
            ("pricing_wine has no column region",),
        ),
        (
            schema.drift,
            "ALTER TABLE pricing_wine ADD COLUMN hue text",
            "ALTER TABLE pricing_wine DROP COLUMN hue",
            Level.WARN,
            ("does not know: hue",),
        ),
        (
            schema.drift,
            "ALTER TABLE alerts_mailwish RENAME TO alerts_gone",
            "ALTER TABLE alerts_gone RENAME TO alerts_mailwish",
            Level.FAIL,
            ("alerts_mailwish is not there",),
        ),
        (
            schema.indexes_and_constraints,
            "ALTER INDEX jobs_deadletter_waits RENAME TO somewhere",
            "ALTER INDEX somewhere RENAME TO jobs_deadletter_waits",
            Level.FAIL,
            ("jobs_deadletter_waits on jobs_deadletter",),
        ),
        (
            schema.indexes_and_constraints,
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'jobs_audit_letters'::regclass",
            "UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'jobs_audit_letters'::regclass",
            Level.FAIL,
            ("jobs_audit_letters is invalid",),
        ),
        (
            schema.indexes_and_constraints,
            "ALTER TABLE pricing_wine ADD CONSTRAINT odd CHECK (size_ml > 0) NOT VALID",
            "ALTER TABLE pricing_wine DROP CONSTRAINT odd",
            Level.WARN,
            ("odd on pricing_wine",),
        ),
        (
            schema.migrations,
            "DELETE FROM django_migrations WHERE app = 'pricing' AND name = '0010_stage_functions'",
            "INSERT INTO django_migrations (app, name, applied) VALUES ('pricing', '0010_stage_functions', now())",
            Level.FAIL,
            ("pricing.0010_stage_functions",),
        ),
        (
            schema.migrations,
            "INSERT INTO django_migrations (app, name, applied) VALUES ('pricing', '9999_of_tomorrow', now())",
            "DELETE FROM django_migrations WHERE name = '9999_of_tomorrow'",
            Level.WARN,
            ("pricing.9999_of_tomorrow",),
        ),
        (
            server.durability,
            "SET synchronous_commit = off",
            "RESET synchronous_commit",
            Level.FAIL,
            ("synchronous_commit is off",),
        ),
        (
            server.autovacuum,
            "ALTER TABLE pricing_offer SET (autovacuum_enabled = off)",
            "ALTER TABLE pricing_offer RESET (autovacuum_enabled)",
            Level.FAIL,
            ("off for pricing_offer",),
        ),
        (
            server.autovacuum,
            "ALTER TABLE jobs_delivery RESET (autovacuum_vacuum_scale_factor)",
            "ALTER TABLE jobs_delivery SET (autovacuum_vacuum_scale_factor = 0.01)",
            Level.WARN,
            ("jobs_delivery",),
        ),
    ],
    ids=lambda value: (
        value if isinstance(value, str) and value.startswith(("ALTER", "DELETE", "SET", "UPD", "INS")) else ""
    ),
)
def test_what_is_broken_in_the_database_is_named(
    well: None, check: Check, how: str, mend: str, level: Level, words: tuple[str, ...]
) -> None:
    assert worst(check).level == Level.OK, worst(check)
    with broken(how, mend):
        assert_names(check, level, *words)


def test_a_clock_that_is_off_is_named(well: None, settings: Any) -> None:
    assert worst(server.clock).level == Level.OK
    settings.DOCTOR_CLOCK_DIFFERENCE = timedelta(seconds=-1)  # as if a second less than none were allowed
    assert_names(server.clock, Level.FAIL, "apart")


def test_connections_that_run_out_are_named(well: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_WARN", 0.0)
    assert_names(server.connections, Level.WARN, "connections are taken")


@COMMITS
def test_a_role_that_may_too_much_or_too_little_is_named(well: None, roles: None, settings: Any) -> None:
    settings.DATABASE_ROLES = PREFIX
    assert worst(rights.as_declared).level == Level.OK, worst(rights.as_declared)
    web, read = name(PREFIX, Role.WEB), name(PREFIX, Role.READ)
    sql(f"GRANT DELETE ON jobs_audit TO {web}", f"REVOKE SELECT ON pricing_wine FROM {read}")
    assert_names(rights.as_declared, Level.FAIL, f"{web} may DELETE jobs_audit")
    assert_names(rights.as_declared, Level.FAIL, f"{read} may not SELECT pricing_wine")
    make_roles(PREFIX)
    assert worst(rights.as_declared).level == Level.OK


def test_in_production_a_process_that_owns_the_tables_is_named(well: None, settings: Any) -> None:
    settings.PRODUCTION = True
    assert_names(rights.who_we_are, Level.WARN, "rewrite the audit log")


@COMMITS
def test_a_month_that_nobody_made_is_named(well: None) -> None:
    following = (timezone.now().replace(day=1) + timedelta(days=32)).strftime("%Y_%m")
    with broken(f"DROP TABLE jobs_message_{following}", "SELECT jobs_make_months(3)"):
        assert_names(work.months_ahead, Level.FAIL, "no partition for the next month")


def test_processes_that_are_silent_or_never_ran_are_named(well: None, settings: Any) -> None:
    Process.objects.filter(kind="watchman").delete()
    Process.objects.filter(kind="scheduler").update(beat_at=timezone.now() - 2 * settings.PROCESS_SILENT_AFTER)
    assert_names(work.processes, Level.FAIL, "watchman has never run")
    assert_names(work.processes, Level.FAIL, "scheduler is silent since")


def test_a_subscription_that_is_paused_narrowed_or_nobodys_is_named(well: None) -> None:
    Subscription.objects.filter(name="price-history").update(paused_at=timezone.now())
    Subscription.objects.filter(name="search-index").update(message_types=[])
    Subscription.objects.create(name="of-old-code", message_types=["x"], ordered=False, partitions=1)
    try:
        assert_names(work.subscriptions, Level.WARN, "price-history is paused")
        assert_names(work.subscriptions, Level.FAIL, "search-index is not in the table as in the code")
        assert_names(work.subscriptions, Level.WARN, "No code handles of-old-code")
    finally:
        Subscription.objects.filter(name="of-old-code").delete()
        Subscription.objects.filter(name="price-history").update(paused_at=None)
        sync_after_migrate()


def test_work_that_nobody_takes_and_an_open_incident_are_named(well: None) -> None:
    assert worst(work.oldest_delivery).level == Level.OK
    long_ago = timezone.now() - timedelta(hours=1)
    subscription = Subscription.objects.get(name="price-history")
    Delivery.objects.create(
        subscription_id=subscription.pk,
        part=0,
        id=1,
        message_id=1,
        published_at=long_ago,
        event_id="evt_1",
        key="k",
        visible_at=long_ago,
        receive_count=0,
    )
    assert_names(work.oldest_delivery, Level.FAIL, "A message waits for 60 minutes")
    Incident.objects.create(
        alarm="dead-letters-new",
        subject="price-history",
        severity="warn",
        summary="3 wait",
        since=long_ago,
        last_true_at=long_ago,
        opened_at=long_ago,
    )
    assert_names(work.incidents, Level.WARN, "dead-letters-new", "3 wait")


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:1/"], ids=["mail server", "API"])
def test_mail_that_nobody_takes_is_named(settings: Any, url: str | None) -> None:
    settings.EMAIL_BACKEND = outside.SMTP if url is None else "jobs.mail.backends.ResendBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1  # nobody listens there
    settings.ANYMAIL = {"RESEND_API_URL": url} if url else {}
    assert_names(outside.mail, Level.FAIL, "127.0.0.1 cannot be reached")


def test_a_replica_that_is_none_and_one_that_is_away_are_named(well: None, settings: Any) -> None:
    settings.REPLICAS = {"default": connections.settings["default"]}
    assert_names(outside.replicas, Level.FAIL, "default is no standby")


def test_a_package_that_is_not_the_pinned_one_is_named(settings: Any, tmp_path: Any) -> None:
    (tmp_path / "requirements.txt").write_text("django==1.0 \\\n    --hash=sha256:0\nno-such-thing==2\n")
    settings.BASE_DIR = tmp_path
    assert_names(code.what_is_installed_is_what_is_pinned, Level.WARN, "(pinned: 1.0)", "no-such-thing missing")


def test_a_deployments_settings_are_looked_at(settings: Any) -> None:
    settings.PRODUCTION, settings.STAFF_NEED_SECOND_FACTOR = True, False
    assert_names(code.settings_are_sound, Level.FAIL, "accounts.E001")


def test_without_a_database_the_rest_is_still_looked_at(well: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import OperationalError

    def away() -> None:
        raise OperationalError("connection refused\nwith a second line")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "ensure_connection", away)
        findings = look()
    (finding,) = [each for each in findings if each.check == "database"]
    assert "connection refused" in finding.says
    assert {each.check for each in findings} >= {"settings", "packages", "mail"}


@COMMITS
def test_a_part_that_cannot_be_looked_at_hides_no_other(well: None) -> None:
    with broken("ALTER TABLE jobs_process RENAME TO jobs_proces", "ALTER TABLE jobs_proces RENAME TO jobs_process"):
        findings = look()
    assert any(each.check == "doctor" and "work.processes" in each.says for each in findings)
    assert any(each.check == "incidents" for each in findings)


@pytest.mark.parametrize(
    ("levels", "code_"), [([Level.OK], 0), ([Level.OK, Level.WARN], 2), ([Level.WARN, Level.FAIL], 1)]
)
def test_the_exit_code_says_how_bad_it_is(levels: list[Level], code_: int) -> None:
    assert exit_code([Finding("x", level, "", "") for level in levels]) == code_


def test_the_command_tells_people_and_programs_and_changes_nothing(well: None) -> None:
    out = StringIO()
    with read_only(), pytest.raises(SystemExit) as ended:
        call_command("doctor", "--json", stdout=out)
    assert ended.value.code == 0
    found = json.loads(out.getvalue())
    assert {"check", "level", "says", "do"} == set(found[0])
    Process.objects.all().delete()
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", stdout=out, no_color=True)
    assert ended.value.code == 1
    assert "→ Start manage.py run_scheduler" in out.getvalue()
