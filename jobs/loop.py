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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

import structlog
from django.conf import settings
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


class Stoppable(Protocol):
    stopping: bool


@contextmanager
def stopped_by_signal(work: Stoppable) -> Iterator[None]:
    """While inside, SIGTERM or SIGINT asks `work` to stop; a second one does what it did before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def ask(number: int, frame: FrameType | None) -> None:
        work.stopping = True
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(step: Callable[[], float], stop: StopSignal, *, on_error: Callable[[], None] = lambda: None) -> None:
    """Call `step`, wait the seconds it returns, and so on until told to stop.

    A step that hangs, on a connection from which nothing comes any more, ends the process by SIGALRM after
    settings.WORKER_WATCHDOG; whoever started it starts it again.
    """
    backoff = RECONNECT_SECONDS[0]
    watchdog = settings.WORKER_WATCHDOG.total_seconds()
    while not stop.stopped:
        try:
            signal.setitimer(signal.ITIMER_REAL, watchdog)
            wait = step()
            signal.setitimer(signal.ITIMER_REAL, 0)
            stop.wait(wait)
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
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        connection.close()
    except Error:
        connection.connection = None
    on_error()
    stop.wait(random.uniform(seconds / 2, seconds))  # noqa: S311
