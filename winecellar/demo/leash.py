"""Ends what the demo started when the demo itself is gone without having done so (kill -9, a crash).

Guarantee: it reads from a pipe whose other end only the demo holds; when that closes, everything still held is ended,
and then it ends itself. `python -m winecellar.demo.leash`, started by children.py and by nobody else.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from winecellar import embedded

GRACE_SECONDS = 10.0
POSTGRES = "postgres"
# A server that was just being started may show itself only now.
POSTGRES_APPEARS_SECONDS = 1.0


def main() -> int:
    held: list[str] = []
    for line in sys.stdin:
        verb, _, what = line.strip().partition(" ")
        if verb == "hold":
            held.append(what)
        elif what in held:
            held.remove(what)
    groups = [int(what) for what in held if what != POSTGRES]
    end_groups(groups, alive=lambda pid: _send(os.kill, pid, 0), patience=lambda: True)
    if POSTGRES in held:
        embedded.default().stop()
        time.sleep(POSTGRES_APPEARS_SECONDS)
        embedded.default().stop()
    return 0


def end_groups(leaders: Iterable[int], *, alive: Callable[[int], bool], patience: Callable[[], bool]) -> None:
    """Ask processes to stop, each the leader of its group; after the grace, or without patience, kill what is left.

    That includes groups that were led by their descendants: a supervisor gives its worker a session of its own.
    """
    families = {pid: _family(pid) for pid in leaders}
    asked = [pid for pid in families if _send(os.kill, pid, signal.SIGTERM)]
    deadline = time.monotonic() + GRACE_SECONDS
    while any(alive(pid) for pid in asked) and time.monotonic() < deadline and patience():
        time.sleep(0.02)
    for family in families.values():
        for pid in family:
            _send(os.killpg, pid, signal.SIGKILL)  # finds nobody when all went well


def _family(pid: int) -> list[int]:
    """The process and its descendants, as far as the system tells; on others than Linux, the process alone."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *(descendant for child in children for descendant in _family(int(child)))]


def _send(send: Callable[[int, int], None], pid: int, number: int) -> bool:
    """Whether the process, or group, was there to be signalled."""
    try:
        send(pid, number)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
