"""A statement that goes by its indexes, and that the server parses and plans once per connection: the claim.

Guarantee: it answers what it would on `connection.cursor()`, and goes by its indexes however small the tables were
when it was planned. Behind a pooler that mixes sessions up any prepared statement (jobs.database.run has others) fails
once, as a lost connection does, and this process prepares no more. `cursor` is for jobs/queue.py, outside transactions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

# A plan made while the table fits a page would read all of it, and be kept when there are a million rows. In the same
# transaction and round trip as the statement, and over with it.
BY_INDEX = (
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),"
    " set_config('enable_sort', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)"
)
# The same for some statements of a transaction whose others are the planner's, and for joins: by loops, since hashing
# and merging read all of a table. Then as it was.
BY_INDEX_HERE = (
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),"
    " set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),"
    " set_config('plan_cache_mode', 'force_generic_plan', true)"
)
AS_BEFORE = BY_INDEX_HERE.replace("'off'", "'on'").replace("force_generic_plan", "auto")
log = structlog.get_logger(__name__)


class _Ours:
    """Whether this process still prepares: until a pooler shows that it may not."""

    possible = True


# invalid_sql_statement_name, duplicate_prepared_statement: it is another session's.
ANOTHERS = {"26000", "42P05"}
# feature_not_supported, "cached plan must not change result type": a migration has changed a table since.
OUTDATED = "0A000"


def wanted() -> bool:
    """Whether statements are to be prepared in this process."""
    return bool(settings.PREPARED_STATEMENTS) and _Ours.possible


@contextmanager
def refusals(error: type[Exception]) -> Iterator[None]:
    """Raise as `error`, which is to mean a lost connection, when the server has another idea of what was prepared: a
    new connection prepares anew, or not at all where this one turns out to be shared."""
    try:
        yield
    except Exception as refused:
        code = getattr(refused, "sqlstate", None) or getattr(refused.__cause__, "sqlstate", None)
        if code in ANOTHERS:
            _Ours.possible = False
            log.warning("statements.not_prepared", reason="this session is shared by others, as by a pooler")
            raise error("a prepared statement is another session's") from refused
        if code == OUTDATED:
            raise error("a prepared statement is older than its table") from refused
        raise


class _SteeredCursor(psycopg.ClientCursor[Any]):
    """Planned each time, where nothing is to be prepared; by the same settings, sent before it in one text."""

    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> "_SteeredCursor":
        super().execute(f"{BY_INDEX}; {query}", params, **kwargs)
        self.nextset()
        return self


class _PreparingCursor(psycopg.Cursor[Any]):
    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> "_PreparingCursor":
        with refusals(psycopg.OperationalError), self.connection.pipeline():
            psycopg.Cursor(self.connection).execute(BY_INDEX, prepare=True)
            return super().execute(query, params, prepare=True, **kwargs)


def cursor(*, keep_plan: bool = True) -> CursorWrapper:
    """Like `connection.cursor()`, but each statement goes by its indexes, and is prepared at its first use on this
    connection, unless it is to be planned each time.

    Parameters of a prepared one travel apart from it, so one whose type cannot be told from its place needs a cast.
    """
    database: Any = connection
    database.ensure_connection()
    # Where queries are logged the text is wanted as it is sent, and of a prepared one there would be none.
    keeps = keep_plan and wanted() and not database.queries_logged
    made = (_PreparingCursor if keeps else _SteeredCursor)(database.connection)
    cursor: CursorWrapper = database._prepare_cursor(made)
    return cursor
