"""The statements that every purchase runs keep their plans, so these must suit tables that are about to grow."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from jobs import prepared
from winecellar.purchases import mail, paying, reserving, rows

pytestmark = pytest.mark.django_db(transaction=True)
STATEMENTS = {
    "look": reserving.LOOK,
    "lock": rows.LOCK,
    "lock the stock": rows.LOCK_STOCK,
    "write": rows.WRITE,
    "ask": paying.ASK,
    "tell": mail.TELL,
    "lock of mails": mail.LOCK,
    "settle": mail.SETTLE,
    "still waiting": mail.WAITING,
}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def kept_plan(sql: str) -> dict[str, Any]:
    """The plan that is kept: the one for any parameters, which EXPLAIN shows of a prepared statement alone."""
    names: list[str | None] = []

    def number(found: re.Match[str]) -> str:
        if found[1] is None or found[1] not in names:
            names.append(found[1])
            return f"${len(names)}"
        return f"${names.index(found[1]) + 1}"

    prepare = re.sub(r"%(?:\((\w+)\))?s", number, sql)
    with connection.cursor() as cursor:
        cursor.execute(f"PREPARE kept AS {prepare}")
        cursor.execute(f"EXPLAIN (FORMAT JSON) EXECUTE kept ({', '.join(['NULL'] * len(names))})")
        (answer,) = cursor.fetchone()
        cursor.execute("DEALLOCATE kept")
    found: dict[str, Any] = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
    return found


@pytest.mark.parametrize("name", STATEMENTS)
def test_it_goes_by_its_indexes_in_tables_that_are_empty_yet(name: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        # As new as after `migrate`: of a table that is only emptied, what autovacuum has seen in it is remembered.
        for table in connection.introspection.table_names(cursor):
            if re.search(rf"\b{table}\b", STATEMENTS[name]):
                cursor.execute(f"CREATE TEMP TABLE {table} (LIKE public.{table} INCLUDING ALL) ON COMMIT DROP")
        cursor.execute(prepared.BY_INDEX_HERE)
        plan = list(nodes(kept_plan(STATEMENTS[name])))
        transaction.set_rollback(True)
    assert not [node["Node Type"] for node in plan if node["Node Type"] in ("Seq Scan", "Hash Join", "Merge Join")]
    looked_up = [node for node in plan if "Index" in node["Node Type"]]
    assert looked_up
    assert all("Index Cond" in node for node in looked_up), "none reads all of an index"
