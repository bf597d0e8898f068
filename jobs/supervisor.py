"""Runs a worker process and replaces it when it dies or falls silent. Does nothing else, so it does not hang.

The worker writes a byte to a pipe each second. No byte for settings.WORKER_WATCHDOG: it is killed (a C extension that
never returns, a process that was stopped). Its deliveries come back when their leases end; what killed it comes alone.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import time
from types import FrameType

import structlog
from django.conf import settings

log = structlog.get_logger(__name__)
# Between restarts: the first wait, and the longest; doubled while workers die young.
RESTART_SECONDS = (0.1, 5.0)
YOUNG_SECONDS = 10.0


class Supervisor:
    """Keeps one worker running from a command line that takes `--heartbeat-fd N`. `run` returns its exit code."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self._stopping = False
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)

    def run(self) -> int:
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        wait = RESTART_SECONDS[0]
        while True:
            began = time.monotonic()
            code = self._run_once()
            if self._stopping:
                return code
            if time.monotonic() - began > YOUNG_SECONDS:
                wait = RESTART_SECONDS[0]
            log.error("worker.died", exit_code=code, restart_in=round(wait, 2))
            select.select([self._wake_reader], [], [], random.uniform(wait / 2, wait))  # noqa: S311
            if self._stopping:
                return 0
            wait = min(2 * wait, RESTART_SECONDS[1])

    def _run_once(self) -> int:
        beats, beat = os.pipe()
        child = subprocess.Popen(  # noqa: S603  (our own command line)
            [*self.command, "--heartbeat-fd", str(beat)], pass_fds=[beat], start_new_session=True
        )
        os.close(beat)
        try:
            self._watch(child, beats)
            return child.wait()
        finally:
            os.close(beats)

    def _watch(self, child: subprocess.Popen[bytes], beats: int) -> None:
        """Return when the child has closed its pipe, which it does by ending."""
        last_beat, has_begun = time.monotonic(), False
        told_at: float | None = None
        while True:
            readable, _, _ = select.select([beats, self._wake_reader], [], [], 1.0)
            now = time.monotonic()
            if beats in readable:
                if not os.read(beats, 4096):
                    return
                last_beat, has_begun = now, True
            if self._wake_reader in readable:
                os.read(self._wake_reader, 4096)
            if self._stopping and told_at is None:
                told_at = now
                child.send_signal(signal.SIGTERM)
            limit = (settings.WORKER_WATCHDOG if has_begun else settings.WORKER_START_LIMIT).total_seconds()
            too_late = told_at is not None and now - told_at > settings.WORKER_GRACE.total_seconds() + limit
            if now - last_beat > limit or too_late:
                log.error("worker.silent", pid=child.pid, seconds=round(now - last_beat))
                child.kill()
                return

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        self._stopping = True
        os.write(self._wake_writer, b".")


class Heartbeat:
    """The worker's end of the pipe. `beat` says whether the supervisor is still there (always, when there is none)."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        if fd is not None:
            os.set_blocking(fd, False)
            os.set_inheritable(fd, False)

    def beat(self) -> bool:
        if self._fd is None:
            return True
        try:
            os.write(self._fd, b".")
        except BlockingIOError:
            return True  # the supervisor is slow to read; the pipe holds more beats than it needs
        except OSError:
            return False
        return True
