"""A statement that the server parses and plans once per connection: the claim, which a lane says over and over.

Guarantee: it answers what it would on `connection.cursor()`, and goes by its indexes however small the tables were
when it was planned. Behind a pooler that mixes sessions up it fails once, as a lost connection does, and this process
prepares no more. For jobs/queue.py alone, outside transactions.
"""

from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper
from psycopg import errors

# A plan made while the table fits a page would read all of it, and be kept when there are a million rows. In the same
# transaction and round trip as the statement, and over with it.
BY_INDEX = (
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),"
    " set_config('enable_sort', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)"
)
log = structlog.get_logger(__name__)


class _Ours:
    """Whether this process still prepares: until a pooler shows that it may not."""

    possible = True


class _PreparingCursor(psycopg.Cursor[Any]):
    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> "_PreparingCursor":
        try:
            with self.connection.pipeline():
                psycopg.Cursor(self.connection).execute(BY_INDEX, prepare=True)
                return super().execute(query, params, prepare=True, **kwargs)
        except (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement) as error:
            _Ours.possible = False
            log.warning("statements.not_prepared", reason="this session is shared by others, as by a pooler")
            raise psycopg.OperationalError("a prepared statement is another session's") from error
        except errors.FeatureNotSupported as error:
            # "cached plan must not change result type": a migration has changed a table. A new connection plans anew.
            raise psycopg.OperationalError("a prepared statement is older than its table") from error


def cursor() -> CursorWrapper:
    """Like `connection.cursor()`, but each statement is prepared at its first use on this connection.

    Parameters travel apart from the statement, so one whose type Postgres cannot tell from its place needs a cast.
    """
    if connection.queries_logged or not (settings.PREPARED_STATEMENTS and _Ours.possible):
        return connection.cursor()  # a log has the text as it was sent, and here there would be none
    connection.ensure_connection()
    raw: Any = _PreparingCursor(connection.connection)
    return connection.make_cursor(raw)
