"""A second pair of hands for a file that is being taken: one thread with one connection, one thing ahead of the first.

While rows are parsed, those before are copied; while differences are recorded, the next windows are compared. So the
database and this process work at the same time. Guarantee: errors are raised where the result is asked for; nothing
runs on after `close`. What was done ahead and is never asked for does no harm: see compare. Called by the refresh.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import connection

Result = TypeVar("Result")


class Ahead:
    """Holds at most one thing that was begun and not asked for, under the key that it was begun for."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="catalogue-ahead")
        self._begun: Future[Any] | None = None
        self._key: object = None

    def begin(self, key: object, work: Callable[[], Result]) -> None:
        """Begin after what was begun before has ended; an error of that is raised here."""
        self.settle()
        self._begun, self._key = self._pool.submit(work), key

    def take(self, key: object, work: Callable[[], Result]) -> Result:
        """The result of what was begun for this key; else do it now."""
        begun, self._begun = self._begun, None
        if begun is not None:
            result: Result = begun.result()
            if self._key == key:
                return result
        return work()

    def settle(self) -> None:
        """Wait for what was begun. Raises its error."""
        if self._begun is not None:
            begun, self._begun = self._begun, None
            begun.result()

    def close(self) -> None:
        self._pool.submit(connection.close)
        self._pool.shutdown(wait=True, cancel_futures=False)
