"""The staged rows of a catalogue file: an unlogged table for each reading, filled by COPY, dropped at the end.

Guarantee: a table belongs to one lease of one file, whose token is in its name, so that a worker that lost its lease
cannot write into its successor's. After a crash of the server it is gone or empty, and is filled anew from the file's
bytes with the same rows under the same numbers. Called by the refresh, and by retention.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from django.db import connection
from psycopg import sql

from pricing.catalogues.rows import Raw
from pricing.models import CatalogueFile

PREFIX = "pricing_stage_"
# As CSV, which Python and the server each write and read in C. Nothing between two commas is "", but in `n` NULL.
COPY = f"COPY {{table}} FROM STDIN (FORMAT csv, FORCE_NOT_NULL ({', '.join(Raw._fields)}))"
# As interpret.says_currency has it.
COUNT_BARE = """
SELECT count(*) FROM {table} WHERE n > 0 AND price <> '' AND currency = '' AND price !~ '[[:alpha:]$]|[^\\x01-\\x7f]'
"""
# Listings of earlier files that this one neither has nor brought unreadable, below zero, in the order of their locks.
ADD_ABSENT = """
INSERT INTO {table} (n, line, source_id, title, size, vintage, gtin, lwin, wine_id, price, currency, availability, url)
SELECT -(%(after)s + row_number() OVER (ORDER BY l.source_id)), 0, l.source_id, '', '', '', '', '', '', '', '', '', ''
FROM pricing_listing l
WHERE l.merchant_id = %(merchant)s AND l.in_file
  AND NOT EXISTS (SELECT FROM {table} s WHERE s.source_id = l.source_id)
"""
# The number of a row in the file, from 1; None: it could not be read, but names a listing that is therefore not absent.
Numbered = tuple[int | None, Raw]


def name(file: CatalogueFile) -> str:
    return f"{PREFIX}{file.pk}_{file.lease_token}"


def create(table: str) -> None:
    _call("SELECT pricing_stage_create(%s)", table)


def copy(table: str, rows: Sequence[Numbered]) -> None:
    """Append rows with their numbers. Commits by itself outside a transaction."""
    text = io.StringIO()
    csv.writer(text).writerows([(n, *row) for n, row in rows])
    with connection.cursor() as cursor, cursor.copy(_sql(COPY, table)) as target:
        target.write(text.getvalue())


def finish(table: str) -> int:
    """After the last row: what the comparison needs to find them. Returns how many prices name no currency."""
    _call("SELECT pricing_stage_finish(%s)", table)
    with connection.cursor() as cursor:
        cursor.execute(_sql(COUNT_BARE, table))
        return int(cursor.fetchone()[0])


def count(table: str) -> int | None:
    """How many rows of the file it holds; None when there is no such table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [table])
        if not table or cursor.fetchone()[0] is None:
            return None
        cursor.execute(_sql("SELECT count(*) FROM {table} WHERE n > 0", table))
        return int(cursor.fetchone()[0])


def add_absent(table: str, merchant_id: str, *, after: int) -> int:
    """Add the listings that the file does not have, numbered after those that are done; how many there are."""
    with connection.cursor() as cursor:
        cursor.execute(_sql("DELETE FROM {table} WHERE n < 0", table))
        cursor.execute(_sql(ADD_ABSENT, table), {"merchant": merchant_id, "after": after})
        return int(cursor.rowcount)


def absent(table: str, *, after: int, limit: int) -> list[str]:
    """The next of them."""
    with connection.cursor() as cursor:
        statement = "SELECT source_id FROM {table} WHERE n < %s AND n >= %s ORDER BY n DESC"
        cursor.execute(_sql(statement, table), [-after, -after - limit])
        return [source_id for (source_id,) in cursor.fetchall()]


def rows(table: str, numbers: Sequence[int]) -> list[tuple[int, Raw]]:
    """These rows, in their order in the file."""
    with connection.cursor() as cursor:
        cursor.execute(_sql("SELECT * FROM {table} WHERE n = ANY(%s) ORDER BY n", table), [list(numbers)])
        return [(n, Raw(*said)) for n, *said in cursor.fetchall()]


def drop(table: str) -> None:
    if table:
        _call("SELECT pricing_stage_drop(%s)", table)


def drop_strays() -> None:
    """Tables whose file is finished or gone; a crash between the last step and the drop leaves one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND starts_with(relname, %s)", [PREFIX])
        found = {table for (table,) in cursor.fetchall()}
    used = CatalogueFile.objects.filter(status__in=CatalogueFile.RUNNING).values_list("stage", flat=True)
    for table in sorted(found - set(used)):
        drop(table)


def _sql(statement: str, table: str) -> sql.Composed:
    return sql.SQL(statement).format(table=sql.Identifier(table))  # type: ignore[arg-type]


def _call(statement: str, table: str) -> None:
    """Functions of the tables' owner, in a migration: whoever takes a file need not be able to make tables."""
    with connection.cursor() as cursor:
        cursor.execute(statement, [table])
