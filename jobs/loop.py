"""The loop of a process that does one thing again and again: step, wait as long as the step said, until told to stop.

SIGTERM and SIGINT only set a flag and write a byte to a pipe. The loop survives every error of a step, the database's
absence included. Used by the scheduler and the watchman.
"""

from __future__ import annotations

import os
import random
import select
import signal
import socket
from collections.abc import Callable
from types import FrameType

import structlog
from django.db import Error, connection

from jobs.database import is_away, sqlstate

log = structlog.get_logger(__name__)
RECONNECT_SECONDS = (0.1, 5.0)


def process_name() -> str:
    """Who we are, on any number of hosts."""
    return f"{socket.gethostname()}:{os.getpid()}"


class StopSignal:
    """Whether the process was told to stop. Make it in the main thread."""

    def __init__(self) -> None:
        self.stopped = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until told to stop; whether we were."""
        if not self.stopped:
            select.select([self._reader], [], [], max(seconds, 0))
        return self.stopped

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        self.stopped = True
        os.write(self._writer, b".")


def run(step: Callable[[], float], stop: StopSignal, *, on_error: Callable[[], None] = lambda: None) -> None:
    """Call `step`, wait the seconds it returns, and so on until told to stop."""
    backoff = RECONNECT_SECONDS[0]
    while not stop.stopped:
        try:
            stop.wait(step())
            backoff = RECONNECT_SECONDS[0]
        except Error as error:
            unexpected = None if is_away(error) else error
            log.warning(
                "loop.database_error", error=type(error).__name__, sqlstate=sqlstate(error), exc_info=unexpected
            )
            _recover(on_error, stop, backoff)
            backoff = min(2 * backoff, RECONNECT_SECONDS[1])
        except Exception:
            log.exception("loop.failed")
            _recover(on_error, stop, RECONNECT_SECONDS[1])


def _recover(on_error: Callable[[], None], stop: StopSignal, seconds: float) -> None:
    try:
        connection.close()
    except Error:
        connection.connection = None
    on_error()
    stop.wait(random.uniform(seconds / 2, seconds))  # noqa: S311
