"""Where a run keeps its logs and mails, and that only one run is there at a time. Imports no Django.

Guarantee: the lock ends with the processes that hold it, however they end. Called by orchestra.py.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from winecellar import embedded

USUAL_CLUSTER = "demo"


def run_folder() -> Path:
    """Where logs and mails of a run are: var/demo, or beneath it for a cluster of another name."""
    folder = embedded.ROOT / "var" / "demo"
    name = embedded.default().name
    return folder if name == USUAL_CLUSTER or os.environ.get("DATABASE_URL") else folder / name


@contextmanager
def alone_in(folder: Path) -> Iterator[TextIO | None]:
    """The lock that keeps other demos out of this folder until the block ends; None if one is there already.

    Whoever inherits the file keeps the lock too: the leash does, until it has ended what a killed demo left.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield lock
