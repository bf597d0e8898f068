"""Alerts of other kinds than a price, in other money than dollars; snoozed, expiring, deleted for some days first.

Columns are renamed, not copied, and numeric(10, 2) becomes numeric(14, 2) without a rewrite of the tables.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0003_seen_withdrawn"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="alert", name="alerts_alert_matching"),
        migrations.RemoveConstraint(model_name="alert", name="alerts_alert_threshold"),
        migrations.RemoveConstraint(model_name="alert", name="alerts_alert_fired_means_notified"),
        migrations.RenameField("alert", "threshold_usd", "target"),
        migrations.RenameField("alert", "price_when_created_usd", "price_when_created"),
        migrations.RenameField("alert", "last_notified_price_usd", "last_notified_price"),
        migrations.RenameField("decision", "price_usd", "price"),
        migrations.RenameField("notification", "old_price_usd", "old_price"),
        migrations.RenameField("notification", "new_price_usd", "new_price"),
        migrations.RenameField("notification", "threshold_usd", "target"),
        migrations.AddField(
            model_name="alert",
            name="currency",
            field=models.CharField(db_default="USD", default="USD", max_length=3),
        ),
        migrations.AddField(
            model_name="alert",
            name="deleted_at",
            field=models.DateTimeField(blank=True, help_text="It can be brought back for some days.", null=True),
        ),
        migrations.AddField(
            model_name="alert",
            name="expires_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="alert",
            name="kind",
            field=models.CharField(
                choices=[
                    ("threshold", "At a price or below"),
                    ("percent", "Some per cent below today’s price"),
                    ("low", "At a new low"),
                    ("back", "Back in stock"),
                ],
                db_default="threshold",
                default="threshold",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="alert",
            name="low_days",
            field=models.PositiveIntegerField(blank=True, help_text="A low of how many days; empty: ever.", null=True),
        ),
        migrations.AddField(
            model_name="alert",
            name="name",
            field=models.CharField(blank=True, db_default="", help_text="What its owner calls it.", max_length=80),
        ),
        migrations.AddField(
            model_name="alert",
            name="percent",
            field=models.DecimalField(blank=True, decimal_places=1, max_digits=4, null=True),
        ),
        migrations.AddField(
            model_name="alert",
            name="snoozed_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="alert",
            name="snoozed_until_rise",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="notification",
            name="currency",
            field=models.CharField(db_default="USD", default="USD", max_length=3),
        ),
        migrations.AddField(
            model_name="notification",
            name="reason",
            field=models.CharField(blank=True, db_default="", help_text="In the reader's words.", max_length=200),
        ),
        migrations.AddField(
            model_name="seenprice",
            name="native_currency",
            field=models.CharField(blank=True, db_default="", default="", max_length=3),
        ),
        migrations.AddField(
            model_name="seenprice",
            name="native_price",
            field=models.DecimalField(
                decimal_places=2,
                help_text="What the merchant asks, where that is not dollars.",
                max_digits=14,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="alert",
            name="last_notified_price",
            field=models.DecimalField(decimal_places=2, max_digits=14, null=True),
        ),
        migrations.AlterField(
            model_name="alert",
            name="price_when_created",
            field=models.DecimalField(decimal_places=2, max_digits=14, null=True),
        ),
        migrations.AlterField(
            model_name="alert",
            name="target",
            field=models.DecimalField(
                blank=True,
                decimal_places=2,
                help_text="Of a price to wait for; a percentage comes to one when it is set.",
                max_digits=14,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="decision",
            name="price",
            field=models.DecimalField(
                decimal_places=2,
                help_text="In the alert's currency; empty where nothing was asked, or no rate is known.",
                max_digits=14,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="notification",
            name="new_price",
            field=models.DecimalField(decimal_places=2, max_digits=14),
        ),
        migrations.AlterField(
            model_name="notification",
            name="old_price",
            field=models.DecimalField(decimal_places=2, max_digits=14, null=True),
        ),
        migrations.AlterField(
            model_name="notification",
            name="target",
            field=models.DecimalField(
                decimal_places=2,
                help_text="As it was then; empty where the alert waits for no price.",
                max_digits=14,
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(
                condition=models.Q(models.Q(("state", "paused"), _negated=True), ("deleted_at__isnull", True)),
                fields=["wine", "state", "currency", "target"],
                name="alerts_alert_to_match",
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", True), ("target__isnull", True)),
                fields=["wine", "merchant", "low_days"],
                name="alerts_alert_without_target",
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(
                condition=models.Q(("currency", "USD"), _negated=True),
                fields=["currency"],
                name="alerts_alert_currency",
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(
                condition=models.Q(("snoozed_until__isnull", False)),
                fields=["snoozed_until"],
                name="alerts_alert_snoozed",
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", False)), fields=["deleted_at"], name="alerts_alert_deleted"
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind", "threshold"),
                        ("low_days__isnull", True),
                        ("percent__isnull", True),
                        ("target__isnull", False),
                    ),
                    models.Q(
                        ("kind", "percent"),
                        ("low_days__isnull", True),
                        ("percent__isnull", False),
                        ("target__isnull", False),
                    ),
                    models.Q(
                        ("kind", "low"),
                        ("percent__isnull", True),
                        ("target__isnull", True),
                        models.Q(("low_days__isnull", True), ("low_days__gt", 0), _connector="OR"),
                    ),
                    models.Q(
                        ("kind", "back"),
                        ("low_days__isnull", True),
                        ("percent__isnull", True),
                        ("target__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="alerts_alert_waits_for_something",
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(condition=models.Q(("target__gt", 0)), name="alerts_alert_target"),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(("percent__gt", 0), ("percent__lt", 100)), name="alerts_alert_percent"
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(("currency__regex", "^[A-Z]{3}$")), name="alerts_alert_currency_code"
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "fired"), _negated=True),
                    ("kind", "back"),
                    models.Q(("last_notified_at__isnull", False), ("last_notified_price__isnull", False)),
                    _connector="OR",
                ),
                name="alerts_alert_fired_means_notified",
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("snoozed_until_rise", False),
                    models.Q(("snoozed_until__isnull", True), ("state", "fired")),
                    _connector="OR",
                ),
                name="alerts_alert_snoozed_until_rise",
            ),
        ),
    ]
