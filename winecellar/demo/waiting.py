"""Waiting on conditions, with a deadline, an ear for the wish to stop and an eye on what should be running.

Called by startup.py and orchestra.py, from the main thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from winecellar.demo.children import Children
from winecellar.demo.stop import StopWish


class ToldToStopError(Exception):
    """Somebody wants the demo to end."""


class Waiting:
    def __init__(self, stop: StopWish, children: Children) -> None:
        self._stop, self._children = stop, children

    def until(self, condition: Callable[[], bool], *, seconds: float, between: float = 0.05) -> bool:
        """Whether the condition came to hold in time. Raises ToldToStopError, and ChildDiedError for a dead process."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.go_on()
            if time.monotonic() > deadline:
                return False
            self._stop.wait(between)
        return True

    def go_on(self) -> None:
        """Raise if there is a reason not to."""
        if self._stop.requested:
            raise ToldToStopError
        self._children.check()
