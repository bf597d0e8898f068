"""Tells the database what this worker has done, and what it is at, once a second. A thread with its own connection.

Guarantee: never in a lane's way, and never an error for anybody. While the database is away the counts are kept.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import Error, connection

from jobs.gauges import store
from jobs.gauges.tally import tally
from jobs.loop import process_name
from jobs.schedule import store as processes

log = structlog.get_logger(__name__)
KIND = "worker"


def tell(doing: Mapping[str, Any], number: int | None = None) -> None:
    """Show a sign of life, and add to the gauges what was counted since the last time."""
    asked_at = time.monotonic()
    tally.heard_time(
        processes.beat(KIND, process_name(), {**doing, "memory_bytes": memory()}, number), asked_at=asked_at
    )
    tell_counts()


def tell_counts() -> None:
    counts = tally.take()
    try:
        if counts:
            store.add(counts)
    except BaseException:
        tally.give_back(counts)
        raise


class Reporter(threading.Thread):
    """`doing` says what the lanes are at; it is asked from this thread. `number`: the worker's (processes.sign_on)."""

    def __init__(self, doing: Callable[[], Mapping[str, Any]], number: int) -> None:
        super().__init__(name="reporter", daemon=True)
        self._doing = doing
        self._number = number
        self._closed = threading.Event()

    def run(self) -> None:
        while not self._closed.is_set():
            self._try(lambda: tell(self._doing(), self._number))
            self._closed.wait(settings.GAUGE_FLUSH_INTERVAL.total_seconds())
        self._try(tell_counts)
        self._try(lambda: processes.sign_off(KIND, process_name()))
        self._try(connection.close)

    def close(self) -> None:
        """Tell the rest, and that this was an orderly end."""
        self._closed.set()
        self.join(timeout=settings.MONITOR_TIMEOUT.total_seconds())

    @staticmethod
    def _try(do: Callable[[], object]) -> None:
        try:
            do()
        except Error as error:
            log.info("reporter.not_told", error=type(error).__name__)
            try:
                connection.close()
            except Error:
                connection.connection = None
        except Exception:
            log.exception("reporter.failed")


def memory() -> int | None:
    """What this process has in memory, in bytes, where the system says so."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
