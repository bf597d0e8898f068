from django.db import migrations


class Migration(migrations.Migration):
    """Counting a merchant's requests costs no disk flush; a crash forgets one minute's count."""

    dependencies = [("pricing", "0001_initial")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE pricing_feedrate SET UNLOGGED",
            "ALTER TABLE pricing_feedrate SET LOGGED",
        )
    ]
