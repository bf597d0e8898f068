"""What journeys are read from: past deliveries that came again, and what follows from an event, and a trace."""

from django.db import migrations, models

# Both are partial: an event that follows from none, and a message of no trace, have no entry and cost none.
INDEXES = """
CREATE INDEX jobs_message_caused_by ON jobs_message ((attributes ->> 'caused_by'))
    WHERE (attributes ->> 'caused_by') IS NOT NULL;
CREATE INDEX jobs_message_trace ON jobs_message (substr(attributes ->> 'traceparent', 4, 32))
    WHERE (attributes ->> 'traceparent') IS NOT NULL;
"""
NO_INDEXES = "DROP INDEX jobs_message_caused_by; DROP INDEX jobs_message_trace;"


class Migration(migrations.Migration):
    dependencies = [("jobs", "0009_gauges")]

    operations = [
        migrations.CreateModel(
            name="PastDelivery",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("subscription_name", models.CharField(max_length=80)),
                ("event_id", models.TextField()),
                ("settled_at", models.DateTimeField()),
                (
                    "suppressed",
                    models.BooleanField(help_text="The ledger knew the event, so it had no effect again."),
                ),
                ("receive_count", models.SmallIntegerField()),
                ("first_received_at", models.DateTimeField(null=True)),
                ("failures", models.JSONField(help_text="Each receive that failed: when, worker, class, reason.")),
            ],
            options={
                "db_table": "jobs_past_delivery",
                "indexes": [
                    models.Index(fields=["event_id"], name="jobs_past_delivery_event"),
                    models.Index(fields=["settled_at"], name="jobs_past_delivery_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Journey",
            fields=[("event_id", models.TextField(primary_key=True, serialize=False))],
            options={"managed": False, "default_permissions": ("view",)},
        ),
        migrations.RunSQL(INDEXES, NO_INDEXES),
    ]
