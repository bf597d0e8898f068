"""A request's body and answer name their merchant without a check, which locks the merchant's row (decision 0038)."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pricing", "0012_look"),
    ]

    operations = [
        migrations.AlterField(
            model_name="feedanswer",
            name="merchant",
            field=models.ForeignKey(
                db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to="pricing.merchant"
            ),
        ),
        migrations.AlterField(
            model_name="rawbody",
            name="merchant",
            field=models.ForeignKey(
                db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to="pricing.merchant"
            ),
        ),
    ]
