"""The message log read out of Postgres by logical decoding, as docs/scaling.md says: another log could take it over."""

import json
import re
from pathlib import Path

import psycopg
import pytest

from jobs.messages import NewMessage, dumps
from jobs.queue import INSERT_MESSAGES
from tests.hosts.pgoutput import Inserted, read
from tests.processes.cluster import Sandbox
from winecellar.embedded import ROOT

pytestmark = pytest.mark.processes
CHANGES = (
    "SELECT data FROM pg_logical_slot_{}_binary_changes('message_log', NULL, NULL,"
    " 'proto_version', '1', 'publication_names', 'message_log')"
)


def statements_of_the_page() -> list[str]:
    """What the page tells an operator to run is what is run here."""
    page = (Path(ROOT) / "docs" / "scaling.md").read_text()
    (block,) = re.findall(r"```sql\n-- the message log, decoded\n(.*?)```", page, re.DOTALL)
    return [statement.strip() for statement in block.split(";") if statement.strip()]


@pytest.fixture(scope="module")
def decoded(database: Sandbox) -> Sandbox:
    for statement in statements_of_the_page():
        database.execute(statement)
    return database


def changes(database: Sandbox, how: str = "get") -> list[Inserted]:
    return read(bytes(data) for (data,) in database.execute(CHANGES.format(how)))


def write(connection: psycopg.Connection, *keys: str) -> list[str]:
    messages = [NewMessage("thing.happened", key, {"seq": n}) for n, key in enumerate(keys)]
    connection.execute(INSERT_MESSAGES, {"messages": dumps([message.as_row() for message in messages]), "delay": 0})
    return [message.event_id for message in messages]


def test_every_committed_message_comes_out_once_in_the_order_of_commits_and_none_that_was_undone(
    decoded: Sandbox,
) -> None:
    with (
        psycopg.connect(decoded.url) as first,
        psycopg.connect(decoded.url) as second,
        psycopg.connect(decoded.url) as undone,
    ):
        early = write(first, "a", "b")
        late = write(second, "c")
        write(undone, "d")
        second.commit()
        undone.rollback()
        first.commit()
    found = changes(decoded, "peek")
    assert [change.row["event_id"] for change in found] == late + early
    assert {change.table for change in found} == {"jobs_message"}, "a reader knows nothing of months"
    assert found == changes(decoded), "until a reader says that it has them, they come again"
    assert changes(decoded) == []


def test_a_message_has_all_that_an_outbox_router_asks_for(decoded: Sandbox) -> None:
    (event_id,) = decoded.publish(1, key="wn_")
    ((change),) = changes(decoded)
    row = change.row
    assert (row["event_id"], row["key"], row["type"]) == (event_id, "wn_0", "thing.happened")
    assert json.loads(row["body"] or "") == {"seq": 0}
    assert json.loads(row["attributes"] or "") == {}


def test_a_month_that_is_dropped_and_deliveries_that_are_acked_say_nothing_to_the_readers(decoded: Sandbox) -> None:
    decoded.execute(
        "CREATE TABLE jobs_message_2020_01 PARTITION OF jobs_message"
        " FOR VALUES FROM ('2020-01-01T00:00Z') TO ('2020-02-01T00:00Z')"
    )
    decoded.execute("SELECT jobs_drop_months('2021-01-01')")
    decoded.execute("DELETE FROM jobs_delivery")
    assert changes(decoded) == []
