"""The wish to stop: Ctrl-C, SIGTERM or a closed terminal. Imports nothing slow, so that it can be installed first.

Guarantee: a signal is never lost, interrupts no code halfway, and wakes whoever waits. The main thread alone waits.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from types import FrameType


class StopWish:
    """`requested` once a signal came; `urgent` once a second one did."""

    def __init__(self) -> None:
        self._signals = 0
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    @property
    def requested(self) -> bool:
        return self._signals > 0

    @property
    def urgent(self) -> bool:
        return self._signals > 1

    def wait(self, seconds: float) -> bool:
        """Wait, but no longer than until the wish comes; whether it came."""
        if not self.requested:
            select.select([self._reader], [], [], seconds)
        return self.requested

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        with contextlib.suppress(BlockingIOError):  # full of earlier wishes: whoever waits is awake
            os.write(self._writer, b".")
