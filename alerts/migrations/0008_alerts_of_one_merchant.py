"""Alerts by their merchant, where they name one.

Most name none, and each price that moved such an alert wrote an entry for it into both of Django's indexes, which
nothing reads: only who deletes a merchant asks, by its id.
"""

import django.db.models.deletion
from django.db import migrations, models

# Each a statement of its own, so that nobody waits; what a failed try has left goes first. By the names Django gave.
DJANGOS = "alerts_alert_merchant_id_1671c6c5"
STEPS = [
    ("DROP INDEX CONCURRENTLY IF EXISTS alerts_alert_merchant", ""),
    (
        "CREATE INDEX CONCURRENTLY alerts_alert_merchant ON alerts_alert (merchant_id) WHERE merchant_id IS NOT NULL",
        "DROP INDEX CONCURRENTLY IF EXISTS alerts_alert_merchant",
    ),
    (
        f"DROP INDEX CONCURRENTLY IF EXISTS {DJANGOS}",
        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {DJANGOS} ON alerts_alert (merchant_id)",
    ),
    (
        f"DROP INDEX CONCURRENTLY IF EXISTS {DJANGOS}_like",
        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {DJANGOS}_like ON alerts_alert (merchant_id varchar_pattern_ops)",
    ),
]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("alerts", "0007_decisions_by_event")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(forward, backward) for forward, backward in STEPS],
            state_operations=[
                migrations.AddIndex(
                    model_name="alert",
                    index=models.Index(
                        name="alerts_alert_merchant", fields=["merchant"], condition=models.Q(merchant__isnull=False)
                    ),
                ),
                migrations.AlterField(
                    model_name="alert",
                    name="merchant",
                    field=models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="Empty: any merchant.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="pricing.merchant",
                    ),
                ),
            ],
        ),
    ]
