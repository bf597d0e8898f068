"""What a database error means, by SQLSTATE and class, never by message text; whether we are in a transaction; and how
the few statements run that every request or message needs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connection, connections
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper

from jobs import prepared

# Classes of SQLSTATE that say "not now": connection, resources, operator intervention, system error.
AWAY_CLASSES = ("08", "53", "57", "58")
AWAY_CODES = {
    "25006",  # read_only_sql_transaction: a standby, or set read-only
    "55P03",  # lock_not_available: lock_timeout
    "40001",  # serialization_failure
    "40P01",  # deadlock_detected
}
LOST_CLASSES = ("08", "57P")


def sqlstate(error: BaseException) -> str | None:
    """The server's code behind a Django or psycopg error; None when the server never answered."""
    for candidate in (error, error.__cause__):
        code = getattr(candidate, "sqlstate", None)
        if isinstance(code, str):
            return code
    return None


def is_away(error: Error) -> bool:
    """Whether the same statement may succeed later: the database is down, full, read-only, busy or out of slots."""
    code = sqlstate(error)
    if code is None:
        return isinstance(error, OperationalError | InterfaceError)
    return code.startswith(AWAY_CLASSES) or code in AWAY_CODES


def database_is_away(error: BaseException) -> bool:
    """The same for any exception: whether it is a database error of that sort."""
    return isinstance(error, Error) and is_away(error)


def connection_is_lost(error: BaseException) -> bool:
    """Whether this connection is of no more use: the next statement needs a new one."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    code = sqlstate(error)
    return code is None or code.startswith(LOST_CLASSES)


def run(sql: str, params: Sequence[Any] | Mapping[str, Any], *, keep_plan: bool = True) -> CursorWrapper:
    """Run a statement whose plan the server keeps from its fifth run on: planning ours takes longer than running them.

    For the statements of a hot path alone, since a connection remembers a hundred. A plan made while a table was small
    is kept while it grows, until the next ANALYZE: what looks rows up in such a table is planned each time, without
    `keep_plan`. Django sends its own, and ours elsewhere, as plain text, which is planned each time too.
    """
    database: Any = connections[DEFAULT_DB_ALIAS]  # `connection` looks it up for each attribute
    database.close_if_health_check_failed()
    database.ensure_connection()
    with database.wrap_database_errors:
        keep_plan = keep_plan and prepared.wanted()
        made = ServerBindingCursor(database.connection) if keep_plan else database.create_cursor()  # type: ignore[call-arg]
        cursor: CursorWrapper = database._prepare_cursor(made)
    with prepared.refusals(OperationalError):
        cursor.execute(sql, params)
    return cursor


@contextmanager
def pipelined() -> Iterator[None]:
    """Send statements without waiting for each one's result; who fetches waits for what is fetched, the end for all.

    An error may come from the fetch or from the end. How many rows a statement changed is not known before the end,
    and Django's ORM asks for it at once: only what knows this runs here. It ends before the transaction commits.
    """
    database: Any = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    with prepared.refusals(OperationalError), database.wrap_database_errors, database.connection.pipeline():
        yield


@contextmanager
def by_index() -> Iterator[None]:
    """What is `run` in here goes by indexes and joins by loops, so its plan may be kept though the tables grow. In a
    pipeline, which is a transaction of its own where none is open.

    In a table that nobody has counted yet it looks rows up. Of one that was counted with few rows in it, it may read a
    whole index, until the table is counted again, which autovacuum does after fifty new rows and a fifth, within a
    minute: then it is planned anew.
    """
    if not prepared.wanted():  # each is planned for the tables as they are
        yield
        return
    database: Any = connections[DEFAULT_DB_ALIAS]
    psycopg.Cursor(database.connection).execute(prepared.BY_INDEX_HERE, prepare=True)
    yield
    psycopg.Cursor(database.connection).execute(prepared.AS_BEFORE, prepare=True)


def tell_the_server(connection: Any, **_: Any) -> None:
    """Of a new connection by network: after how long a silence it is to end the session, whatever it is doing.

    Received from Django. Not sent as the connection's options, which poolers refuse.
    """
    database = connection.connection
    if connection.vendor != "postgresql" or database.info.host.startswith(("/", "@")):
        return
    wanted = settings.DATABASE_SESSION
    asked = ", ".join("set_config(%s, %s, false)" for _ in wanted)
    with connection.wrap_database_errors:
        database.execute(f"SELECT {asked}", [str(part) for pair in wanted.items() for part in pair])


def in_transaction() -> bool:
    """Whether a transaction of the code under test, not of Django's TestCase around it, is open."""
    return any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)
