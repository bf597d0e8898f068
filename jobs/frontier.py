"""Where to claim next: which partitions may have work, and from which id on to look. In memory, shared by lanes.

Guarantee: a partition's mark never passes a delivery that may still appear. A publisher that drew a low id and
commits late would otherwise be overtaken by its key's next message. So an oldest id seen becomes the mark only
once a later look's snapshot has no transaction left that was running at the first (xmin ≥ that xmax). What was learnt
of one server is not believed of another: after a failover that lost commits, ids and transactions begin again lower.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from jobs.queue import Look, Partition

# How many keys are looked past at most. Beyond that a poll begins again at the front.
MOST_BLOCKED = 20_000
# For so long a partition where others were at work is left to them, if there is another: a few batches' time.
CROWDED_SECONDS = 0.05


@dataclass
class _State:
    mark: int = 0
    candidate: tuple[int, int] | None = None  # (oldest id seen, that look's xmax)
    blocked: set[str] = field(default_factory=set)
    crowded_until: float = 0.0
    wide: bool = False  # the last look found less to claim than it asked for


class Frontier:
    """Hands partitions to lanes, one lane of this process at a time each, in random order.

    A lane may stay with a partition for a few claims; where a claim found another worker at it, we go elsewhere for a
    moment. So workers seldom meet: a claim that finds most of its window in another's hands was for nothing.
    """

    def __init__(self) -> None:
        self.server = 0  # how often there may have been another
        self._states: dict[Partition, _State] = {}
        self._limits: dict[int, int] = {}
        self._open: set[int] | None = None  # subscriptions that may be handed out; None until the first sweep
        self._ready: set[Partition] = set()
        self._busy: set[Partition] = set()
        self._condition = threading.Condition()
        self._poked = False

    def take(self, stay: Partition | None = None) -> Partition | None:
        """A partition that may have work and that no other lane here holds; give it back with `release`.

        `stay`: this one, if it is among them.
        """
        with self._condition:
            free = self._free()
            if not free:
                return None
            if stay not in free:
                now = time.monotonic()
                quiet = [partition for partition in free if self._state(partition).crowded_until <= now]
                stay = random.choice(quiet or tuple(free))  # noqa: S311  (fairness, not secrecy)
            partition = stay
            self._ready.discard(partition)
            self._busy.add(partition)
            return partition

    def release(self, partition: Partition, *, more: bool) -> None:
        with self._condition:
            self._busy.discard(partition)
            if more and (self._open is None or partition[0] in self._open):
                self._ready.add(partition)
                self._condition.notify()

    def announce(self, partitions: Iterable[Partition]) -> None:
        """These may have work: said by a sweep, or by a notification."""
        with self._condition:
            found = [p for p in partitions if self._open is None or p[0] in self._open]
            if found:
                self._ready.update(found)
                self._condition.notify_all()

    def restrict(self, subscriptions: set[int], limits: dict[int, int]) -> None:
        """Hand out these subscriptions only (others are paused), and at most so many partitions of each at once."""
        with self._condition:
            self._open = subscriptions
            self._ready = {partition for partition in self._ready if partition[0] in subscriptions}
            self._limits = limits

    def wait(self, seconds: float) -> None:
        """Return when something may be ready, when poked, or after so many seconds."""
        with self._condition:
            self._condition.wait_for(lambda: self._poked or bool(self._free()), timeout=seconds)
            self._poked = False

    def rest(self, seconds: float) -> None:
        """Return when poked, or after so many seconds, whatever is ready: it is not to be taken yet."""
        with self._condition:
            self._condition.wait_for(lambda: self._poked, timeout=seconds)
            self._poked = False

    def poke(self) -> None:
        """Wake a waiting lane: something it waits for outside the queue has happened."""
        with self._condition:
            self._poked = True
            self._condition.notify_all()

    def mark(self, partition: Partition) -> int:
        return self._state(partition).mark

    def marks(self) -> dict[Partition, int]:
        with self._condition:
            return {partition: state.mark for partition, state in self._states.items() if state.mark}

    def window(self, partition: Partition, batch: int) -> int:
        """How many deliveries to look at for a batch: no more, unless the last time some of them could not go."""
        return 2 * batch if self._state(partition).wide else batch

    def blocked(self, partition: Partition) -> list[str]:
        """Keys to look past in this partition, until the next sweep."""
        return list(self._state(partition).blocked)

    def begin_anew(self) -> None:
        """A connection was lost: the next may lead to another server, of which nothing is known."""
        with self._condition:
            self.server += 1
            self._states = {}

    def learn(
        self,
        partition: Partition,
        look: Look,
        *,
        claimed: int,
        batch: int = 1,
        partial: bool = False,
        server: int | None = None,
    ) -> bool:
        """Note what a claim saw; whether it is worth looking again at once. `server`: as it stood before the claim.

        A full window of which nothing could go is looked past next time, so that keys in backoff, or one with a
        huge backlog, hold up no others for longer than it takes to scan over them.
        """
        state = self._state(partition)
        # A look that passed over blocked keys (`partial`, whatever is blocked by now) has not seen the oldest, so it
        # says nothing about the mark.
        if look.first is not None and not partial and server in {None, self.server}:
            if state.candidate and look.xmin >= state.candidate[1]:
                state.mark = max(state.mark, min(state.candidate[0], look.first))
                state.candidate = None
            if state.candidate is None and look.first > state.mark:
                state.candidate = (look.first, look.xmax)
        state.wide = claimed < min(look.seen, batch)
        state.crowded_until = time.monotonic() + CROWDED_SECONDS if 2 * claimed < min(look.seen, batch) else 0.0
        if look.blocked and len(state.blocked) < MOST_BLOCKED:
            state.blocked.update(look.blocked)
            return True
        return claimed > 0

    def look_from_the_front(self) -> None:
        """Forget what was blocked: by now it may go. Called with each sweep."""
        with self._condition:
            for state in self._states.values():
                state.blocked = set()

    def _free(self) -> set[Partition]:
        free = self._ready - self._busy
        if self._limits:
            held = Counter(subscription for subscription, _ in self._busy)
            free = {p for p in free if held[p[0]] < self._limits.get(p[0], len(self._busy) + 1)}
        return free

    def _state(self, partition: Partition) -> _State:
        with self._condition:
            return self._states.setdefault(partition, _State())
