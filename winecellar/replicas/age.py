"""How old a replica is at most, from marks of where the primary's log was and when. Pure.

Guarantee: YOUNG only if the replica has all that was committed `limit` ago; LATE only if it lacks something of that.
Where nobody looked for a while neither is known. Called by standby.py.
"""

from __future__ import annotations

from collections import deque
from enum import Enum


class Verdict(Enum):
    YOUNG = "young"
    LATE = "late"
    UNKNOWN = "unknown"


class Age:
    """`limit` and all times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, float]] = deque()
        self._as_of: float | None = None

    def mark(self, position: int, at: float) -> None:
        """At this time, all that had been committed lay before this position."""
        self._marks.append((position, at))

    def judge(self, *, replayed: int, now: float, limit: float) -> Verdict:
        late = False
        while self._marks:
            position, at = self._marks[0]
            if position <= replayed:
                self._as_of = at
            elif now - at > limit:
                late = True
            else:
                break
            self._marks.popleft()
        if self._as_of is not None and now - self._as_of <= limit:
            return Verdict.YOUNG
        return Verdict.LATE if late else Verdict.UNKNOWN

    def behind(self, now: float) -> float | None:
        """Seconds, an upper bound; None before anything is known."""
        return None if self._as_of is None else now - self._as_of
