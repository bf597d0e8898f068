"""How a scripted mail provider behaves: one behaviour for each request, in order, then well for ever. Pure.

    hang:8            says nothing for eight seconds, takes nothing, answers 503
    taken-hang:8      takes the mail, then says nothing for eight seconds
    429:30            too many requests, Retry-After 30; likewise 500, 503 and any other status, the seconds optional
    drip              takes the mail and answers a few bytes a second, for minutes
    reset, taken-reset   cuts the connection before or after it takes the mail
    garbage           takes the mail and answers what is no JSON
    ok                takes the mail and says so

`500*20` is twenty of them; `brownout:30` is a time, not a request: for so many seconds all hang, then fail.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

KINDS = {"ok", "hang", "taken-hang", "drip", "reset", "taken-reset", "garbage", "brownout"}
_PART = re.compile(r"([a-z-]+|[45]\d\d)(?::(\d+(?:\.\d+)?))?(?:\*(\d{1,4}))?")
BROWNOUT_HANGS = 8.0


@dataclass(frozen=True)
class Behaviour:
    """`kind` is one of KINDS or a status; `seconds` is how long it hangs, or what Retry-After says."""

    kind: str = "ok"
    seconds: float | None = None

    @property
    def status(self) -> int | None:
        return int(self.kind) if self.kind.isdigit() else None

    @property
    def takes(self) -> bool:
        """Whether the mail is taken, whatever the sender learns of it."""
        return self.kind in {"ok", "taken-hang", "drip", "taken-reset", "garbage"}


WELL = Behaviour()


def read(text: str, kinds: Collection[str] = KINDS) -> list[Behaviour]:
    """The behaviours of a script such as `ok*3, 429:30, hang:8*2`. Raises ValueError in words."""
    behaviours: list[Behaviour] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = _PART.fullmatch(part)
        if found is None or not (found[1].isdigit() or found[1] in kinds):
            raise ValueError(
                f"{part!r} is no behaviour; there are {', '.join(sorted(kinds))}, and statuses such as 503"
            )
        behaviours += [Behaviour(found[1], float(found[2]) if found[2] else None)] * int(found[3] or 1)
    return behaviours


class Script:
    """Hands the behaviours out, one per request; threads may share it."""

    def __init__(
        self, text: str = "", *, hangs: float = BROWNOUT_HANGS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._behaviours = read(text)
        self._hangs = hangs
        self._clock = clock
        self._lock = threading.Lock()
        self._bad_until: float | None = None

    def next(self) -> Behaviour:
        with self._lock:
            if self._bad_until is not None and self._clock() < self._bad_until:
                return Behaviour("hang", self._hangs)
            if not self._behaviours:
                return WELL
            behaviour = self._behaviours.pop(0)
            if behaviour.kind == "brownout":
                self._bad_until = self._clock() + (behaviour.seconds or 0.0)
                return Behaviour("hang", self._hangs)
            return behaviour
