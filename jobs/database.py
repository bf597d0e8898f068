"""What a database error means, by SQLSTATE and class, never by message text; and whether we are in a transaction."""

from django.db import Error, InterfaceError, OperationalError, connection

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


def in_transaction() -> bool:
    """Whether a transaction of the code under test, not of Django's TestCase around it, is open."""
    return any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)
