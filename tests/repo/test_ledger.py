"""The ledger is the course's table, to the column."""

import pytest
from django.db import connection


@pytest.mark.django_db
def test_processed_messages_has_exactly_the_courses_columns_and_key() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns"
            " WHERE table_name = 'processed_messages' ORDER BY ordinal_position"
        )
        assert cursor.fetchall() == [
            ("consumer_name", "text", "NO", None),
            ("event_id", "text", "NO", None),
            ("processed_at", "timestamp with time zone", "NO", "now()"),
        ]
        cursor.execute(
            "SELECT array_agg(a.attname::text ORDER BY array_position(i.indkey::int[], a.attnum::int)), i.indisprimary"
            " FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)"
            " WHERE i.indrelid = 'processed_messages'::regclass GROUP BY i.indexrelid, i.indisprimary"
        )
        assert cursor.fetchall() == [(["consumer_name", "event_id"], True)]
