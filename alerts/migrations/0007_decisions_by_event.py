"""An index of decisions by their event, for its journey."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("alerts", "0006_other_ways")]

    operations = [
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["event_id"], name="alerts_decision_event"),
        ),
    ]
