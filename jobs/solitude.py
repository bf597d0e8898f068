"""Who may work at once in this process: all lanes together, or one of them alone.

Guarantee: while a lane is alone no other lane of the process holds a claim, so that what dies with the process then is
charged to the one message it died of. Lanes ask before they claim; waiting is bounded, so that a lane stays responsive.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Solitude:
    """A lock that many may share or one may have alone; whoever wants to be alone goes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sharing = 0
        self._alone = False
        self._wanted = 0

    def share(self, seconds: float) -> bool:
        """Work beside others. False when somebody was alone, or wanted to be, for so long."""
        with self._changed:
            free = self._changed.wait_for(lambda: not self._alone and not self._wanted, timeout=seconds)
            self._sharing += free
            return free

    def seclude(self, seconds: float) -> bool:
        """Work alone. False when others were at work for so long."""
        with self._changed:
            self._wanted += 1
            try:
                free = self._changed.wait_for(lambda: not self._alone and not self._sharing, timeout=seconds)
                self._alone = self._alone or free
                return free
            finally:
                self._wanted -= 1
                self._changed.notify_all()

    def is_wanted(self) -> bool:
        """Whether somebody waits to be alone; whoever shares for long should then come to an end."""
        return self._wanted > 0

    def leave(self) -> None:
        """Whoever shared, or was alone, holds no claim any more."""
        with self._changed:
            if self._alone:
                self._alone = False
            else:
                self._sharing -= 1
            self._changed.notify_all()

    @contextmanager
    def shared(self, seconds: float) -> Iterator[bool]:
        """As `share`, for as long as the block runs; yields whether it may."""
        may = self.share(seconds)
        try:
            yield may
        finally:
            if may:
                self.leave()

    @contextmanager
    def secluded(self, seconds: float) -> Iterator[bool]:
        """As `seclude`, for as long as the block runs; yields whether it may."""
        may = self.seclude(seconds)
        try:
            yield may
        finally:
            if may:
                self.leave()
