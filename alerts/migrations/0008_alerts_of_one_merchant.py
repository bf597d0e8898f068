"""Alerts by their merchant, where they name one.

Most name none, and each price that moved such an alert wrote an entry for it into both of Django's indexes, which
nothing reads: only who deletes a merchant asks, by its id.
"""

import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# By the names that Django gave them; dropped so that nobody waits.
DROP = [
    "DROP INDEX CONCURRENTLY IF EXISTS alerts_alert_merchant_id_1671c6c5",
    "DROP INDEX CONCURRENTLY IF EXISTS alerts_alert_merchant_id_1671c6c5_like",
]
MAKE = [
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_alert_merchant_id_1671c6c5 ON alerts_alert (merchant_id)",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_alert_merchant_id_1671c6c5_like"
    " ON alerts_alert (merchant_id varchar_pattern_ops)",
]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("alerts", "0007_decisions_by_event")]

    operations = [
        AddIndexConcurrently(
            model_name="alert",
            index=models.Index(
                name="alerts_alert_merchant", fields=["merchant"], condition=models.Q(merchant__isnull=False)
            ),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(drop, make) for drop, make in zip(DROP, MAKE, strict=True)],
            state_operations=[
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
