"""Each kind of process does its work with its own role, and cannot do what is not its work."""

from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from jobs import catalog
from jobs.schedule.declared import load_schedule
from jobs.worker import drain
from pricing import rebuild
from pricing.catalogues import stage
from pricing.keys import create_key
from pricing.models import PriceHistory
from tests.cast import merchant, person, wine, with_app
from tests.deployment.conftest import PREFIX, As
from tests.jobs.conftest import rows
from winecellar.deployment.grants import TABLES, follow_code, make_roles
from winecellar.deployment.roles import RULES, SECRET_COLUMN, Role, name, rule_of

pytestmark = pytest.mark.django_db
COMMITS = pytest.mark.django_db(transaction=True)


@COMMITS
def test_a_price_travels_from_the_feed_to_the_mail_with_no_process_owning_a_table(acting: As) -> None:
    wine()
    client = Client()
    client.force_login(person("alice"))
    key = create_key(merchant=merchant(), note="", now=timezone.now())[1]

    def merchant_asks(price: str, minute: int) -> None:
        price_now = {
            "wine_id": "wn_4417",
            "price": price,
            "currency": "USD",
            "occurred_at": f"2026-03-14T09:{minute}:00Z",
        }
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"at {minute}"}
        body = {"observations": [price_now]}
        answer = client.post("/feeds/v1/price-changes", body, "application/json", headers=headers)
        assert answer.status_code == 202, answer.content

    with acting(Role.WEB):
        merchant_asks("189.00", 10)
        watched = client.post("/wines/wn_4417", {"target": "160.00"})
        assert watched.status_code == 302, watched.content
    with acting(Role.WORKER):
        drain()
    with acting(Role.WEB):
        merchant_asks("154.00", 11)
    mail.outbox = []
    with acting(Role.WORKER):
        drain()
    with acting(Role.WEB):
        assert client.get("/alerts").status_code == 200
        assert b"154.00" in client.get("/wines/wn_4417").content
    assert len(mail.outbox) == 1
    assert PriceHistory.objects.count() == 2


@COMMITS
@pytest.mark.parametrize("job", sorted(load_schedule()))
def test_every_scheduled_job_runs_as_the_worker(acting: As, job: str) -> None:
    from jobs.sync import sync_after_migrate

    sync_after_migrate()
    with acting(Role.WORKER):
        call_command("run_job", job)
    assert rows("SELECT outcome FROM jobs_run WHERE job = %s", job) == [("ran",)]


@pytest.mark.parametrize(
    "page", ["/admin/", "/admin/jobs/deadletter/", "/admin/jobs/scheduledjob/", "/admin/pricing/feedkey/"]
)
def test_operators_pages_are_read_with_the_web_servers_role(acting: As, page: str) -> None:
    from winecellar.accounts.models import User

    charlie = with_app(person("charlie"))
    User.objects.filter(pk=charlie.pk).update(is_staff=True, is_superuser=True)
    charlie.refresh_from_db()
    client = Client()
    with acting(Role.WEB):
        client.force_login(charlie)
        assert client.get(page).status_code == 200


@COMMITS
def test_an_operator_makes_a_projection_anew_with_the_admins_role(acting: As) -> None:
    with acting(Role.ADMIN), rebuild.difference(wines=None) as found:
        assert not found.any


@COMMITS
def test_a_worker_makes_months_and_stages_through_their_owner(acting: As) -> None:
    month = f"jobs_message_{timezone.now():%Y_%m}"
    rows_of(f"DROP TABLE IF EXISTS {month}")  # its messages were the tests'
    with acting(Role.WORKER):
        catalog.ensure_message_partitions()
        stage.create("pricing_stage_7_abc")
        stage.finish("pricing_stage_7_abc")
        assert stage.count("pricing_stage_7_abc") == 0
        stage.drop("pricing_stage_7_abc")
        assert stage.count("pricing_stage_7_abc") is None
    owner = name(PREFIX, Role.OWNER)
    assert rows("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = %s::regclass", month) == [(owner,)]


WRITE_A_MONTH = "UPDATE jobs_message_default SET body = '{}'"
PEOPLE = (Role.WEB, Role.WORKER, Role.ADMIN, Role.READ)


@pytest.mark.parametrize(
    ("who", "statement"),
    [
        *((role, "UPDATE jobs_audit SET note = 'nothing'") for role in PEOPLE),
        *((role, "DELETE FROM jobs_audit") for role in PEOPLE),
        *((role, "TRUNCATE jobs_audit") for role in PEOPLE),
        *((role, "ALTER TABLE jobs_audit DISABLE TRIGGER jobs_audit_row") for role in PEOPLE),
        *((role, "DROP TABLE jobs_audit") for role in PEOPLE),
        *((role, "DELETE FROM jobs_message") for role in PEOPLE),
        *((role, WRITE_A_MONTH) for role in PEOPLE),
        *((role, "CREATE TABLE mine (x int)") for role in PEOPLE),
        *((role, "SELECT pricing_stage_drop('pricing_wine')") for role in PEOPLE),
        *((role, "DELETE FROM django_migrations") for role in PEOPLE),
        (Role.WEB, "INSERT INTO processed_messages (consumer_name, event_id) VALUES ('price-history', 'evt_1')"),
        (Role.WEB, "UPDATE pricing_pricehistory SET price_usd = 1"),
        (Role.WEB, "UPDATE jobs_lock SET expires_at = now()"),
        (Role.WEB, "SELECT jobs_drop_months(now())"),
        (Role.WEB, "CREATE TEMPORARY TABLE mine (x int)"),
        (Role.WORKER, "DELETE FROM pricing_pricehistory"),
        (Role.WORKER, "SELECT data FROM mfa_authenticator"),
        (Role.WORKER, "SELECT sealed FROM pricing_signingsecret"),
        (Role.WORKER, "SELECT secret_sha256 FROM pricing_feedkey"),
        (Role.WORKER, "UPDATE account_emailaddress SET verified = true"),
        (Role.READ, "SELECT email FROM accounts_user"),
        (Role.READ, "SELECT sealed_address FROM alerts_channel"),
        (Role.READ, "SELECT body FROM jobs_message"),
        (Role.READ, "DELETE FROM pricing_wine"),
    ],
)
def test_what_is_not_its_work_is_refused(acting: As, who: Role, statement: str) -> None:
    with acting(who), pytest.raises(DatabaseError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert getattr(refused.value.__cause__, "sqlstate", None) == "42501", refused.value


@COMMITS
def test_a_month_that_ended_of_late_is_dropped_by_nobody_whatever_time_is_asked_for(acting: As) -> None:
    ((old, late),) = rows(
        "SELECT to_char(now() - interval '90 days', 'YYYY_MM'), to_char(now() - interval '1 month', 'YYYY_MM')"
    )
    for month in (old, late):
        first = f"{month.replace('_', '-')}-01"
        rows_of(
            f"CREATE TABLE IF NOT EXISTS jobs_message_{month} PARTITION OF jobs_message"
            f" FOR VALUES FROM ('{first}T00:00Z') TO ('{first}T00:00:01Z')"
        )
    make_roles(PREFIX)
    with acting(Role.WORKER):
        assert rows("SELECT jobs_drop_months('infinity')") == [(f"jobs_message_{old}",)]
    rows_of(f"DROP TABLE jobs_message_{late}")


@COMMITS
def test_a_table_that_nobody_has_thought_of_is_the_processes_to_use_and_hidden_from_readers(acting: As) -> None:
    """Made by its owner, as a migration makes it: nobody edits a list."""
    try:
        with acting(Role.OWNER):
            rows_of("CREATE TABLE alerts_brand_new (id bigint GENERATED ALWAYS AS IDENTITY, x int)")
        for role in (Role.WEB, Role.WORKER):
            with acting(role):
                rows_of("INSERT INTO alerts_brand_new (x) VALUES (1)")
                rows_of("DELETE FROM alerts_brand_new")
        with acting(Role.READ), pytest.raises(DatabaseError):
            rows_of("SELECT * FROM alerts_brand_new")
    finally:
        rows_of("DROP TABLE IF EXISTS alerts_brand_new")


@COMMITS
def test_after_a_migrate_the_owners_new_tables_get_their_own_rule(acting: As, settings: Any) -> None:
    settings.DATABASE_ROLES = PREFIX
    try:
        with acting(Role.OWNER):
            rows_of("CREATE TABLE pricing_stage_1_new (x int)")
            rows_of("CREATE TABLE pricing_new (x int)")
            follow_code()
        with acting(Role.READ):
            rows_of("SELECT * FROM pricing_new")
            with pytest.raises(DatabaseError):
                rows_of("SELECT * FROM pricing_stage_1_new")
    finally:
        rows_of("DROP TABLE IF EXISTS pricing_stage_1_new, pricing_new")


@COMMITS
def test_making_the_roles_again_changes_nothing(acting: As) -> None:
    rights = (
        "SELECT relname, relowner, relacl::text FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
    )
    before = rows(rights)
    assert make_roles(PREFIX) == []
    assert rows(rights) == before
    assert ("jobs_audit",) in rows(TABLES)


def test_every_table_is_of_an_app_that_roles_py_knows_and_every_rule_is_of_a_table(db: None) -> None:
    tables = [table for (table,) in rows(TABLES)]
    assert [table for table in tables if rule_of(table) is None] == []
    assert [rule.tables for rule in RULES if not any(rule_of(table) is rule for table in tables)] == []


def test_no_column_that_looks_like_a_secret_is_open_to_the_read_only_role(db: None) -> None:
    columns = rows(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        " AND table_name <> ALL (SELECT relname FROM pg_class WHERE relispartition)"
    )
    open_to_read = [
        f"{table}.{column}"
        for table, column in columns
        if SECRET_COLUMN.search(column) and (rule := rule_of(table)) and rule.read
    ]
    assert sorted(open_to_read) == NO_SECRETS


# So named, and opening nothing: numbers and names of leases, a message's key, the digest of a public file.
NO_SECRETS = [
    *(
        "jobs_breaker.probe_token",
        "jobs_delivery.key",
        "jobs_delivery.lease_token",
        "jobs_lock.token",
        "jobs_run.token",
    ),
    *("pricing_cataloguefile.lease_token", "pricing_cataloguefile.sha256"),
]


def rows_of(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
