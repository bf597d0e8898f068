"""The words of a wine's name once more, marked: the index tells them from the others, which weights it does not."""

from django.db import migrations

MARK = """
UPDATE pricing_winedocument SET words = words || array_to_tsvector(
    ARRAY(SELECT '=' || lexeme FROM unnest(words) WHERE 'A' = ANY(weights)))
"""
UNMARK = """
UPDATE pricing_winedocument SET words = ts_delete(
    words, ARRAY(SELECT lexeme FROM unnest(words) WHERE lexeme LIKE '=%'))
"""


class Migration(migrations.Migration):
    dependencies = [("pricing", "0010_stage_functions")]

    operations = [migrations.RunSQL(MARK, UNMARK)]
