"""Dead letters become case files: decisions, redrives, a tally kept by triggers, and an append-only audit log."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

# What was buried before has no fingerprint of ours; this one keeps like with like until retention removes it.
BEFORE = """
UPDATE jobs_deadletter SET waits_from = dead_lettered_at,
    fingerprint = left(md5(concat_ws(chr(31), subscription_name, message_type, error_class, reason)), 16);
INSERT INTO jobs_deadletter_tally (fingerprint, hour, origin, letters, waiting)
SELECT fingerprint, date_trunc('hour', dead_lettered_at, 'UTC'), origin, count(*), count(waits_from)
FROM jobs_deadletter GROUP BY 1, 2, 3;
"""

# One upsert per kind, hour and origin that a statement touches, in one order for everybody, so that two large
# statements cannot hold each other up for good. Rows that come to nothing go, and so the tally stays small.
TALLY = """
CREATE FUNCTION jobs_tally_letters(fp text, at timestamptz, who text, n bigint, open bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO jobs_deadletter_tally AS t (fingerprint, hour, origin, letters, waiting)
    VALUES (fp, at, who, n, open)
    ON CONFLICT (fingerprint, hour, origin)
    DO UPDATE SET letters = t.letters + excluded.letters, waiting = t.waiting + excluded.waiting
$$;
CREATE FUNCTION jobs_tally_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM jobs_tally_letters(c.fingerprint, c.hour, c.origin, c.n, c.open) FROM (
        SELECT fingerprint, date_trunc('hour', dead_lettered_at, 'UTC') AS hour, origin, count(*) AS n,
               count(waits_from) AS open
        FROM fresh GROUP BY 1, 2, 3 ORDER BY 1, 2, 3) c;
    RETURN NULL;
END $$;
CREATE FUNCTION jobs_tally_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM jobs_tally_letters(c.fingerprint, c.hour, c.origin, c.n, c.open) FROM (
        SELECT fingerprint, date_trunc('hour', dead_lettered_at, 'UTC') AS hour, origin, sum(n) AS n, sum(open) AS open
        FROM (SELECT fingerprint, dead_lettered_at, origin, 1 AS n, (waits_from IS NOT NULL)::int AS open FROM fresh
              UNION ALL
              SELECT fingerprint, dead_lettered_at, origin, -1, -(waits_from IS NOT NULL)::int FROM stale) both_ways
        GROUP BY 1, 2, 3 HAVING sum(n) <> 0 OR sum(open) <> 0 ORDER BY 1, 2, 3) c;
    RETURN NULL;
END $$;
CREATE FUNCTION jobs_tally_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM jobs_tally_letters(c.fingerprint, c.hour, c.origin, -c.n, -c.open) FROM (
        SELECT fingerprint, date_trunc('hour', dead_lettered_at, 'UTC') AS hour, origin, count(*) AS n,
               count(waits_from) AS open
        FROM stale GROUP BY 1, 2, 3 ORDER BY 1, 2, 3) c;
    DELETE FROM jobs_deadletter_tally WHERE letters = 0 AND (fingerprint, hour, origin) IN
        (SELECT fingerprint, date_trunc('hour', dead_lettered_at, 'UTC'), origin FROM stale);
    RETURN NULL;
END $$;
CREATE TRIGGER jobs_tally_inserted AFTER INSERT ON jobs_deadletter REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION jobs_tally_inserted();
CREATE TRIGGER jobs_tally_updated AFTER UPDATE ON jobs_deadletter REFERENCING OLD TABLE AS stale NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION jobs_tally_updated();
CREATE TRIGGER jobs_tally_deleted AFTER DELETE ON jobs_deadletter REFERENCING OLD TABLE AS stale
    FOR EACH STATEMENT EXECUTE FUNCTION jobs_tally_deleted();
"""
NO_TALLY = """
DROP TRIGGER jobs_tally_inserted ON jobs_deadletter;
DROP TRIGGER jobs_tally_updated ON jobs_deadletter;
DROP TRIGGER jobs_tally_deleted ON jobs_deadletter;
DROP FUNCTION jobs_tally_inserted();
DROP FUNCTION jobs_tally_updated();
DROP FUNCTION jobs_tally_deleted();
DROP FUNCTION jobs_tally_letters(text, timestamptz, text, bigint, bigint);
"""

# The log of what people did. The triggers fire for everybody, the table's owner and superusers among them, and also
# under session_replication_role = replica. Who owns the table can still drop them, which is a change of the schema, not
# of data: where the role that serves requests is not the one that migrates, it cannot (docs/decisions/0026).
AUDIT = """
CREATE TABLE jobs_audit (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    by          text        NOT NULL CHECK (by <> ''),
    action      text        NOT NULL,
    selection   text        NOT NULL,
    letter_ids  bigint[]    NOT NULL,
    note        text        NOT NULL CHECK (note <> ''),
    details     jsonb       NOT NULL DEFAULT '{}'
);
CREATE INDEX jobs_audit_letters ON jobs_audit USING gin (letter_ids);
REVOKE UPDATE, DELETE, TRUNCATE ON jobs_audit FROM PUBLIC, CURRENT_USER;
CREATE FUNCTION jobs_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'jobs_audit is append-only: % is refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER jobs_audit_row BEFORE UPDATE OR DELETE ON jobs_audit
    FOR EACH STATEMENT EXECUTE FUNCTION jobs_audit_is_append_only();
CREATE TRIGGER jobs_audit_whole BEFORE TRUNCATE ON jobs_audit
    FOR EACH STATEMENT EXECUTE FUNCTION jobs_audit_is_append_only();
ALTER TABLE jobs_audit ENABLE ALWAYS TRIGGER jobs_audit_row;
ALTER TABLE jobs_audit ENABLE ALWAYS TRIGGER jobs_audit_whole;
"""
NO_AUDIT = "DROP TABLE jobs_audit; DROP FUNCTION jobs_audit_is_append_only();"


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0006_schedule"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("by", models.TextField()),
                ("action", models.CharField(max_length=20)),
                ("selection", models.TextField()),
                (
                    "letter_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("note", models.TextField()),
                ("details", models.JSONField()),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "db_table": "jobs_audit",
                "ordering": ("-id",),
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="Redrive",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[("redrive", "redriven as it is"), ("readapt", "re-adapted and redriven")],
                        max_length=10,
                    ),
                ),
                ("selection", models.TextField(help_text="Which letters were asked for, in words.")),
                ("total", models.PositiveIntegerField()),
                ("rate_per_second", models.PositiveSmallIntegerField()),
                (
                    "stop_share",
                    models.FloatField(help_text="It stops by itself when more than this share fails again."),
                ),
                ("by", models.TextField()),
                ("note", models.TextField()),
                (
                    "told",
                    models.TextField(db_default="", help_text="Who knows that old letters will be processed again."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("running", "running"), ("stopped", "stopped"), ("done", "done")],
                        db_default="running",
                        max_length=10,
                    ),
                ),
                ("counts", models.JSONField(default=dict, help_text="Letters by outcome, as of the last step.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "next_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), help_text="When the next portion may go."
                    ),
                ),
                ("stop_asked_by", models.TextField(db_default="")),
                ("stopped_because", models.TextField(db_default="")),
                ("ended_at", models.DateTimeField(help_text="When nothing of it was under way any more.", null=True)),
            ],
            options={
                "db_table": "jobs_redrive",
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="Tally",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "fingerprint", "hour", "origin", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("fingerprint", models.CharField(max_length=16)),
                ("hour", models.DateTimeField()),
                ("origin", models.TextField()),
                ("letters", models.IntegerField()),
                ("waiting", models.IntegerField()),
            ],
            options={
                "db_table": "jobs_deadletter_tally",
            },
        ),
        migrations.AlterModelOptions(
            name="deadletter",
            options={
                "ordering": ("-id",),
                "permissions": (
                    ("redrive_deadletter", "Can redrive dead letters as they are"),
                    ("readapt_deadletter", "Can re-adapt and redrive dead letters"),
                    ("discard_deadletter", "Can discard dead letters"),
                    ("quarantine_deadletter", "Can quarantine dead letters"),
                    ("assign_deadletter", "Can assign dead letters"),
                    ("comment_deadletter", "Can comment on dead letters"),
                ),
            },
        ),
        migrations.RemoveIndex(
            model_name="deadletter",
            name="jobs_deadletter_age",
        ),
        migrations.AddField(
            model_name="deadletter",
            name="assigned_to",
            field=models.TextField(db_default=""),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="decided_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="decided_by",
            field=models.TextField(db_default=""),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="decision",
            field=models.CharField(
                blank=True,
                choices=[
                    ("redrive", "redriven as it is"),
                    ("readapt", "re-adapted and redriven"),
                    ("discard", "discarded"),
                    ("superseded", "discarded as superseded"),
                    ("quarantine", "quarantined"),
                ],
                db_default="",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="fingerprint",
            field=models.CharField(db_default="", help_text="The same for letters of one kind.", max_length=16),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="generation",
            field=models.PositiveSmallIntegerField(db_default=0, help_text="How often it had been redriven before."),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="note",
            field=models.TextField(db_default="", help_text="Why."),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="older",
            field=models.BooleanField(db_default=False, help_text="Newer facts had been applied when it was redriven."),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="origin",
            field=models.TextField(db_default="", help_text="Whom it came from, as the domain says: a merchant."),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="outcome",
            field=models.CharField(
                blank=True,
                choices=[
                    ("queued", "waits for its turn"),
                    ("sent", "in the queue"),
                    ("applied", "applied"),
                    ("older", "applied, though older than what is current"),
                    ("suppressed", "suppressed: the ledger knew it"),
                    ("failed_again", "failed again"),
                    ("refused", "not sent: it would fail again"),
                ],
                db_default="",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="sent_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="settled_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="waits_from",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                help_text="Since when it waits for a decision, or from when on; empty when decided.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="failures",
            field=models.JSONField(default=list, help_text="Each receive that failed: when, worker, class, reason."),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="subscription_name",
            field=models.CharField(max_length=80, verbose_name="subscription"),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="redrive",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="letters",
                to="jobs.redrive",
            ),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["dead_lettered_at", "id"], name="jobs_deadletter_age"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["fingerprint", "dead_lettered_at", "id"], name="jobs_deadletter_kind"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["origin", "dead_lettered_at", "id"], name="jobs_deadletter_origin"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["subscription_name", "dead_lettered_at", "id"], name="jobs_deadletter_sub"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["event_id"], name="jobs_deadletter_event"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("waits_from__isnull", False)),
                fields=["subscription_name", "waits_from"],
                name="jobs_deadletter_waits",
            ),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("waits_from__isnull", False)),
                fields=["subscription_name", "dead_lettered_at"],
                name="jobs_deadletter_goes",
            ),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("redrive__isnull", False)),
                fields=["redrive", "outcome", "id"],
                name="jobs_deadletter_redrive",
            ),
        ),
        migrations.AddConstraint(
            model_name="deadletter",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("decision__in", ["", "quarantine"]), ("waits_from__isnull", False)),
                    models.Q(("waits_from", None), models.Q(("decision__in", ["", "quarantine"]), _negated=True)),
                    _connector="OR",
                ),
                name="jobs_deadletter_decided",
            ),
        ),
        migrations.AddConstraint(
            model_name="deadletter",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("decision", ""),
                    models.Q(
                        ("decided_at__isnull", False),
                        models.Q(("decided_by", ""), _negated=True),
                        models.Q(("note", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="jobs_deadletter_by_somebody",
            ),
        ),
        migrations.AddConstraint(
            model_name="deadletter",
            constraint=models.CheckConstraint(
                condition=models.Q(("outcome", ""), ("redrive__isnull", False), _connector="OR"),
                name="jobs_deadletter_outcome",
            ),
        ),
        migrations.RunSQL(BEFORE, migrations.RunSQL.noop),
        migrations.RunSQL(TALLY, NO_TALLY),
        migrations.RunSQL(AUDIT, NO_AUDIT),
    ]
