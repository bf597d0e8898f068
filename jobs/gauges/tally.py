"""What this process has done since it last told: counted in memory, per batch. No Django, no database.

Guarantee: nothing is counted twice. What a process had not told when it died is missing. Lanes add from their threads;
reporter.py takes, and gives back what it could not tell. Ages are by the database's clock, whatever this host's says.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from jobs.gauges.buckets import bucket
from jobs.messages import Message

Partition = tuple[int, int]
# Of one batch the ages of at most so many are taken, evenly spread, each standing for its neighbours: reading a time
# costs as much as making a message, and what is in one batch was published close together.
TIMED = 16
APPLIED, ERROR, UNKNOWN = "applied", "error", "unknown_type"


@dataclass
class Flow:
    """One partition's: handed out, acked, put back after a failure, buried."""

    received: int = 0
    acked: int = 0
    retried: int = 0
    buried: int = 0

    def add(self, other: Flow) -> None:
        self.received += other.received
        self.acked += other.acked
        self.retried += other.retried
        self.buried += other.buried


@dataclass
class Counts:
    """`occurred` is keyed by what, subscription and name: (APPLIED, 3, "17") is the bucket, (ERROR, 3, "KeyError")."""

    flows: dict[Partition, Flow] = field(default_factory=dict)
    occurred: Counter[tuple[str, int, str]] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.flows or self.occurred)

    def flow(self, partition: Partition) -> Flow:
        return self.flows.setdefault(partition, Flow())


class Tally:
    """One per process. Each call is for a batch, and costs some microseconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counts()
        self._offset: float | None = None  # the database's time less this process's monotonic one

    def heard_time(self, epoch: float, *, asked_at: float) -> None:
        """The database's time, asked for at this monotonic time and answered now."""
        self._offset = epoch - (asked_at + time.monotonic()) / 2

    def received(self, partition: Partition, count: int) -> None:
        with self._lock:
            self._counts.flow(partition).received += count

    def applied(self, partition: Partition, messages: Sequence[Message]) -> None:
        """Call it once their transaction has committed."""
        ages = self._ages(messages)
        with self._lock:
            self._counts.flow(partition).acked += len(messages)
            for number, stands_for in ages:
                self._counts.occurred[APPLIED, partition[0], str(number)] += stands_for

    def failed(self, partition: Partition, error_class: str, *, buried: bool) -> None:
        with self._lock:
            flow = self._counts.flow(partition)
            if buried:
                flow.buried += 1
            else:
                flow.retried += 1
            self._counts.occurred[ERROR, partition[0], error_class[:200]] += 1

    def unknown(self, partition: Partition, types: Iterable[str]) -> None:
        with self._lock:
            for type_ in types:
                self._counts.occurred[UNKNOWN, partition[0], type_[:200]] += 1

    def take(self) -> Counts:
        with self._lock:
            taken, self._counts = self._counts, Counts()
        return taken

    def give_back(self, taken: Counts) -> None:
        with self._lock:
            for partition, flow in taken.flows.items():
                self._counts.flow(partition).add(flow)
            self._counts.occurred.update(taken.occurred)

    def _ages(self, messages: Sequence[Message]) -> list[tuple[int, int]]:
        """Buckets of the time since publication, by the database's clock; nothing before its time was heard."""
        if self._offset is None or not messages:
            return []
        now = self._offset + time.monotonic()
        size = len(messages)
        timed = min(size, TIMED)
        edges = [size * n // timed for n in range(timed + 1)]
        return [
            (bucket(now - messages[first].published_at.timestamp()), after - first) for first, after in pairwise(edges)
        ]


tally = Tally()
