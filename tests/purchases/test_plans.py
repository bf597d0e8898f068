"""The statements that every purchase runs keep their plans, so these must not depend on how small the tables were."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction

from jobs.database import by_index, pipelined, run
from winecellar.purchases import mail, paying, reserving, rows

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 3, 14, 9, 12, tzinfo=UTC)
STATEMENTS: dict[str, tuple[str, Any]] = {
    "look": (reserving.LOOK, {"item": 1, "buyer": 1, "token": "x", "reserves": ["charging"]}),
    "lock": (rows.LOCK, [[1, 2]]),
    "lock the stock": (rows.LOCK_STOCK, [[1, 2], ["completed"]]),
    "write": (rows.WRITE, {"now": NOW, **dict.fromkeys(["purchases", "stock", "entries", "money", "mails"], "[]")}),
    "ask": (paying.ASK, {"now": NOW, "ids": [1], "asked": "[]"}),
    "tell": (mail.TELL, [[1, 2]]),
    "lock of mails": (mail.LOCK, [[1, 2]]),
    "settle": (mail.SETTLE, [NOW, [1, 2], ["sent", "sent"]]),
    "still waiting": (mail.WAITING, [[1, 2]]),
}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("name", STATEMENTS)
def test_it_goes_by_its_indexes_in_tables_that_are_empty_yet(name: str) -> None:
    sql, parameters = STATEMENTS[name]
    with transaction.atomic(), pipelined(), by_index():
        explained = run("EXPLAIN (FORMAT JSON) " + sql, parameters)
    (answer,) = explained.fetchone()
    plan = list(nodes((json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]))
    assert not [node["Node Type"] for node in plan if node["Node Type"] in ("Seq Scan", "Hash Join", "Merge Join")]
    looked_up = [node for node in plan if "Index" in node["Node Type"]]
    assert looked_up
    assert all("Index Cond" in node for node in looked_up), "none reads all of an index"
