"""Whose a lease is: each worker draws a number, which its lease tokens carry in their upper bits."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0011_owner_functions")]

    operations = [
        migrations.AddField(
            model_name="process",
            name="number",
            field=models.IntegerField(help_text="A worker's, which its leases carry.", null=True),
        ),
        # As many as the bits above a token's own leave room for.
        migrations.RunSQL(
            "CREATE SEQUENCE jobs_process_number MAXVALUE 8388607 CYCLE", "DROP SEQUENCE jobs_process_number"
        ),
    ]
