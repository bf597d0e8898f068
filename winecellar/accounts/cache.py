"""A cache that all processes and hosts share: rows of an UNLOGGED table. What counts attempts and remembers used codes.

Guarantee: each operation is one statement; `add` is atomic, so that of many callers one gets True. The clock is the
database's. Values are JSON, for what is read back must not be able to run. A crash of the database forgets all of it,
which forgives a few attempts. Each write takes two expired rows away, so the table holds little more than what is live.
Django's own database cache counts the whole table at each write. Used through django.core.cache.
"""

from __future__ import annotations

import json
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.db import connection

READ = """
SELECT value FROM accounts_cacheentry WHERE key = %s AND (expires_at IS NULL OR expires_at > clock_timestamp())
"""
WRITE = """
WITH gone AS (
    DELETE FROM accounts_cacheentry WHERE key IN (
        SELECT key FROM accounts_cacheentry WHERE expires_at <= clock_timestamp() AND key <> %(key)s
        ORDER BY expires_at LIMIT 2 FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO accounts_cacheentry AS entry (key, value, expires_at)
VALUES (%(key)s, %(value)s, clock_timestamp() + make_interval(secs => %(seconds)s))
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
"""
ONLY_IF_EXPIRED = " WHERE entry.expires_at <= clock_timestamp()"
TOUCH = """
UPDATE accounts_cacheentry SET expires_at = clock_timestamp() + make_interval(secs => %s)
WHERE key = %s AND (expires_at IS NULL OR expires_at > clock_timestamp())
"""
DELETE = "DELETE FROM accounts_cacheentry WHERE key = %s"
PURGE = "DELETE FROM accounts_cacheentry WHERE expires_at <= clock_timestamp()"


class SharedCache(BaseCache):
    """Timeouts are in seconds; None keeps a value until it is deleted."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return self._write(WRITE + ONLY_IF_EXPIRED, key, value, timeout, version) == 1

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._write(WRITE, key, value, timeout, version)

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(READ, [self.make_and_validate_key(key, version=version)])
            row = cursor.fetchone()
        return default if row is None else json.loads(row[0])

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return _run(TOUCH, [self._seconds(timeout), self.make_and_validate_key(key, version=version)]) == 1

    def delete(self, key: Any, version: int | None = None) -> bool:
        return _run(DELETE, [self.make_and_validate_key(key, version=version)]) == 1

    def clear(self) -> None:
        _run("DELETE FROM accounts_cacheentry")

    def _write(self, statement: str, key: Any, value: Any, timeout: Any, version: int | None) -> int:
        named = {
            "key": self.make_and_validate_key(key, version=version),
            "value": json.dumps(value),
            "seconds": self._seconds(timeout),
        }
        return _run(statement, named)

    def _seconds(self, timeout: Any) -> float | None:
        """None for ever: in SQL, now plus an unknown interval is unknown."""
        return self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout


def purge() -> int:
    """Remove what has expired; how many rows that was."""
    return _run(PURGE)


def _run(statement: str, parameters: Any = None) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
