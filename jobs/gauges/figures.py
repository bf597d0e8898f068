"""The gauges as figures, and the arithmetic between them. Pure; imports no Django.

A subscription is its partitions: whatever is said of it as a whole is a sum or the worst of them, never a mean, for a
mean of one partition that is forty minutes late and fifteen that are idle says that all is well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from jobs.gauges.buckets import quantile

ZERO = timedelta(0)
# A partition is hot when it waits so much longer, or is so much deeper, than the one in the middle.
HOT = 8


class Counted(NamedTuple):
    """One partition at the last census; its columns are explained in models.PartitionCount."""

    subscription: int
    part: int
    depth: int
    in_flight: int
    suspect: int
    retrying: int
    delayed: int
    unreceived: int
    most_receives: int
    oldest: datetime | None
    oldest_unreceived: datetime | None
    due: datetime | None


class Flows(NamedTuple):
    """What came and went over some minutes."""

    arrived: int = 0
    received: int = 0
    acked: int = 0
    retried: int = 0
    buried: int = 0


class Pause(NamedTuple):
    """When messages last came, the longest they have stayed away between two times, in how many slots they came."""

    last: datetime
    longest: timedelta
    slots: int


class Point(NamedTuple):
    """A subscription in one minute. `depth` and `due_seconds` are None where nobody counted."""

    subscription: int
    minute: datetime
    depth: int | None
    due_seconds: float | None
    arrived: int
    acked: int


GROWING = timedelta.max


def drain_time(depth: int, *, arriving: float, completing: float) -> timedelta:
    """How long until nothing waits, at these rates per minute; GROWING when that is never."""
    if depth <= 0:
        return ZERO
    if completing <= arriving:
        return GROWING
    minutes = depth / (completing - arriving)
    return timedelta(minutes=minutes) if minutes < 1e9 else GROWING


def age(since: datetime | None, now: datetime) -> timedelta:
    """How long ago; zero where there is nothing, or it is yet to come."""
    return max(now - since, ZERO) if since else ZERO


@dataclass(frozen=True)
class Partition:
    """One partition's gauges at `now`. Rates are per minute."""

    counted: Counted
    flows: Flows
    minutes: float
    now: datetime

    @property
    def part(self) -> int:
        return self.counted.part

    @property
    def depth(self) -> int:
        return self.counted.depth

    @property
    def age(self) -> timedelta:
        """Of the oldest message, from its publication: nothing but its end resets it."""
        return age(self.counted.oldest, self.now)

    @property
    def waiting(self) -> timedelta:
        """How long the one that waits longest could have been handled: its age, less a delay it was published with."""
        return age(self.counted.due, self.now)

    @property
    def lag(self) -> timedelta:
        """How far behind the reading is: the age of the oldest message that was never handed out."""
        return age(self.counted.oldest_unreceived, self.now)

    @property
    def arriving(self) -> float:
        return self.flows.arrived / self.minutes

    @property
    def completing(self) -> float:
        return (self.flows.acked + self.flows.buried) / self.minutes

    @property
    def drains_in(self) -> timedelta:
        return drain_time(self.depth, arriving=self.arriving, completing=self.completing)

    @property
    def is_cycling(self) -> bool:
        """Something was handed out and came back, while nothing waits for its first time."""
        return bool(self.counted.retrying or self.counted.suspect) and not self.counted.unreceived


@dataclass(frozen=True)
class Subscription:
    """A subscription's gauges. `applied`: buckets of the time from publication to effect, over the last minutes.

    `promise`: by when an effect should have come.
    """

    name: str
    ordered: bool
    promise: timedelta
    paused_at: datetime | None
    partitions: Sequence[Partition]
    applied: Mapping[int, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    unknown_types: Mapping[str, int] = field(default_factory=dict)
    pause: Pause | None = None
    dead: Sequence[int] = ()

    def total(self, what: str) -> int:
        return sum(getattr(partition.counted, what) for partition in self.partitions)

    @property
    def depth(self) -> int:
        return self.total("depth")

    @property
    def worst(self) -> Partition:
        return max(self.partitions, key=lambda p: (p.waiting, p.depth))

    @property
    def age(self) -> timedelta:
        return max(partition.age for partition in self.partitions)

    @property
    def lag(self) -> timedelta:
        return max(partition.lag for partition in self.partitions)

    @property
    def arriving(self) -> float:
        return sum(partition.arriving for partition in self.partitions)

    @property
    def completing(self) -> float:
        return sum(partition.completing for partition in self.partitions)

    @property
    def drains_in(self) -> timedelta:
        """The slowest partition's: the others' speed is of no use to it, since a key lives in one partition."""
        return max(partition.drains_in for partition in self.partitions)

    @property
    def receives_per_ack(self) -> float | None:
        """1 when everything succeeds at once; None when nothing was acked."""
        acked = sum(partition.flows.acked for partition in self.partitions)
        return sum(partition.flows.received for partition in self.partitions) / acked if acked else None

    def window(self, share: float) -> float | None:
        """Seconds from publication to effect that so large a share did not pass; None: nothing was applied lately."""
        return quantile(self.applied, share)

    def is_hot(self, partition: Partition) -> bool:
        """Whether it waits, or holds, a multiple of what the subscription's middle partition does."""
        if len(self.partitions) < 2 or not partition.depth:
            return False
        middle = len(self.partitions) // 2
        waits = sorted(p.waiting for p in self.partitions)[middle]
        depths = sorted(p.depth for p in self.partitions)[middle]
        late = partition.waiting > HOT * max(waits, timedelta(seconds=5))
        return late or partition.depth > HOT * max(depths, 100)


_TEXT = re.compile(r"(?:E|U&|B|X)?'(?:[^']|'')*'|\$([A-Za-z_]*)\$.*?\$\1\$", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w$])\d[\d.]*(?:e[+-]?\d+)?\b", re.IGNORECASE)
_OPEN_TEXT = re.compile(r"'[^']*$|\$[A-Za-z_]*\$.*$", re.DOTALL)


def masked(query: str, longest: int = 200) -> str:
    """A statement without the values in it: they may be somebody's address. What was cut off in a text is one too."""
    bare = _OPEN_TEXT.sub("?", _NUMBER.sub("?", _TEXT.sub("?", query)))
    one_line = " ".join(bare.split())
    return one_line if len(one_line) <= longest else one_line[: longest - 1] + "…"
