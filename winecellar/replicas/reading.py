"""Where the pages of one request read: a replica that has replayed what its visitor wrote, else the primary.

Guarantee: decided at the first read, not before; once the request has written, or while it has a transaction open, it
reads from the primary. Outside a request (workers, commands) there is no such choice. Called by middleware.py and
router.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from jobs.database import in_transaction
from winecellar.replicas.standby import Standby

READS_ONLY = ("SELECT", "WITH", "SHOW", "SAVEPOINT", "RELEASE")
WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)


class Reading:
    """One request's. `written_at` is the log position of its visitor's last write, 0 for none that matters."""

    def __init__(self, standby: Standby | None, written_at: int) -> None:
        self._standby = standby
        self._written_at = written_at
        self._decided: str | None = None
        self.wrote = False

    @property
    def replica(self) -> Standby | None:
        """The replica that was read from, if one was."""
        return self._standby if self._standby is not None and self._decided == self._standby.alias else None

    def alias(self) -> str:
        if self.wrote or in_transaction():
            return DEFAULT_DB_ALIAS
        if self._decided is None:
            usable = self._standby is not None and self._standby.has_replayed(self._written_at)
            self._decided = self._standby.alias if self._standby is not None and usable else DEFAULT_DB_ALIAS
        return self._decided

    def stay_on_primary(self) -> None:
        self._decided = DEFAULT_DB_ALIAS

    def note(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        """An execute wrapper on the primary's connection. What does not plainly read is taken for a write."""
        begins = sql.lstrip(" \n(")[:9].upper()
        if not begins.startswith(READS_ONLY) or (begins.startswith("WITH") and WRITES.search(sql)):
            self.wrote = True
        return execute(sql, params, many, context)


current: ContextVar[Reading | None] = ContextVar("reading", default=None)
