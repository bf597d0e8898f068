"""Where a run keeps its logs and mails, and that only one run is there at a time. Imports no Django.

Guarantee: the lock ends with the process that holds it, however that ends. Called by orchestra.py.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from winecellar import embedded

USUAL_CLUSTER = "demo"


def run_folder() -> Path:
    """Where logs and mails of a run are: var/demo, or beneath it for a cluster of another name."""
    folder = embedded.ROOT / "var" / "demo"
    name = embedded.default().name
    return folder if name == USUAL_CLUSTER or os.environ.get("DATABASE_URL") else folder / name


@contextmanager
def alone_in(folder: Path) -> Iterator[bool]:
    """Whether no other demo uses this folder; none will until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
