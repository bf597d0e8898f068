from django.db import migrations


class Migration(migrations.Migration):
    """The buckets of rate-limited subscriptions. UNLOGGED: a crash refills them, which is one second's worth."""

    dependencies = [("jobs", "0003_controls")]
    operations = [
        migrations.RunSQL(
            "CREATE UNLOGGED TABLE jobs_rate (subscription_id smallint PRIMARY KEY, tokens float8 NOT NULL,"
            " filled_at timestamptz NOT NULL) WITH (fillfactor = 50)",
            "DROP TABLE jobs_rate",
        )
    ]
