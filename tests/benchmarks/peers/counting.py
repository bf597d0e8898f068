"""Counts what a handler has seen, in a file per process that the driver reads while it waits.

Imported by our routes and, from its own folder, by the peers' scripts. Does nothing unless BENCH_COUNTS names where.
"""

import io
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterable
from pathlib import Path


class _Counter:
    def __init__(self, base: str) -> None:
        self.count = 0
        self._lock = threading.Lock()
        with Path(f"{base}.{os.getpid()}.count").open("w+b") as file:
            file.write(bytes(8))
            file.flush()
            self._map = mmap.mmap(file.fileno(), 8)
        self.times: io.TextIOWrapper | None = None
        if os.environ.get("BENCH_TIMES"):
            self.times = Path(f"{base}.{os.getpid()}.times").open("w", buffering=1)  # noqa: SIM115  (as long as we live)

    def add(self, many: int) -> None:
        with self._lock:  # a worker's lanes are threads
            self.count += many
            struct.pack_into("<q", self._map, 0, self.count)


BASE = os.environ.get("BENCH_COUNTS")
_counters: dict[int, _Counter] = {}  # by process: a peer may fork
_making = threading.Lock()


def counter() -> _Counter | None:
    if BASE is None:
        return None
    pid = os.getpid()
    with _making:
        if pid not in _counters:
            _counters[pid] = _Counter(BASE)
        return _counters[pid]


def seen(number: int) -> None:
    """One job has reached its handler."""
    seen_many(1, (number,))


def seen_many(count: int, numbers: Iterable[int]) -> None:
    """A batch has reached its handler. `numbers` is read only when BENCH_TIMES asks for the moment of each."""
    now = time.time()
    current = counter()
    if current is None:
        return
    current.add(count)
    if current.times:
        for number in numbers:
            current.times.write(f"{number} {now:.7f}\n")
