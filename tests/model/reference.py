"""What the queue ought to hold, in a hundred lines of memory: no SQL, no clock, no marks, no batches cut in halves.

Deliberately not the algorithm of jobs/: one message after another, the simplest thing that keeps every promise. A test
drives both with the same calls and compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

OK, TRANSIENT, UNKNOWN, PERMANENT = "ok", "transient", "unknown", "permanent"


@dataclass
class Delivery:
    id: int
    consumer: str
    event: str
    key: str
    visible: bool = True
    token: int | None = None
    receives: int = 0
    failures: int = 0


@dataclass(frozen=True)
class Letter:
    consumer: str
    event: str
    cause: str
    receives: int
    failures: int


@dataclass
class Reference:
    """`ordered`: the consumers that keep each key's order."""

    ordered: set[str]
    max_receives: int
    deliveries: dict[int, Delivery] = field(default_factory=dict)
    ledger: set[tuple[str, str]] = field(default_factory=set)
    effects: list[tuple[str, str]] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)

    # --- Claim --------------------------------------------------------------------------------------------------

    def claimable(self, consumer: str, *, batch: int, window: int, past: Sequence[str]) -> list[int]:
        """Of the oldest `window`: a silent worker's delivery alone if it is the oldest that may go, else a batch.

        Keys in `past` are not looked at. Without an order only what is hidden can be in the way, so that is left out.
        """
        clear: list[int] = []
        suspects: list[int] = []
        met: set[str | int] = set()
        held_up: set[str | int] = set()
        mine = [self.deliveries[i] for i in sorted(self.deliveries) if self.deliveries[i].consumer == consumer]
        ordered = consumer in self.ordered
        if past:
            mine = [d for d in mine if (d.key not in past if ordered else d.visible)]
        for delivery in mine[:window]:
            group = delivery.key if ordered else delivery.id
            if group not in held_up:
                if delivery.visible and delivery.token is None:
                    clear.append(delivery.id)
                else:
                    held_up.add(group)
                    if delivery.visible and group not in met:
                        suspects.append(delivery.id)
            met.add(group)
        if suspects and (not clear or suspects[0] < clear[0]):
            return suspects[:1]
        return clear[:batch]

    def suspects(self, ids: Sequence[int]) -> list[int]:
        """Those whose holder fell silent."""
        return [i for i in ids if self.deliveries[i].token is not None]

    def take(self, ids: Sequence[int], token: int) -> None:
        for id_ in ids:
            delivery = self.deliveries[id_]
            delivery.failures += delivery.token is not None  # the attempt that ended in silence is noted
            delivery.visible, delivery.token, delivery.receives = False, token, delivery.receives + 1

    def owned(self, ids: Sequence[int], token: int) -> list[int]:
        return [i for i in ids if i in self.deliveries and self.deliveries[i].token == token]

    # --- Settle -------------------------------------------------------------------------------------------------

    def put_back(self, ids: Sequence[int], token: int, *, visible: bool, charged: bool, failed: bool = False) -> int:
        """Returns how many were still the token's."""
        mine = self.owned(ids, token)
        for id_ in mine:
            delivery = self.deliveries[id_]
            delivery.visible, delivery.token = visible, None
            delivery.receives -= 0 if charged else 1
            delivery.failures += failed
        return len(mine)

    def bury(self, id_: int, token: int, cause: str, receives: int) -> bool:
        if not self.owned([id_], token):
            return False
        gone = self.deliveries.pop(id_)
        self.letters.append(Letter(gone.consumer, gone.event, cause, receives, gone.failures + 1))
        return True

    def apply(self, ids: Sequence[int], token: int) -> bool:
        """All of these deliveries at once, or none when one is another's by now."""
        if len(self.owned(ids, token)) < len(ids):
            return False
        for id_ in ids:
            gone = self.deliveries.pop(id_)
            entry = (gone.consumer, gone.event)
            if entry not in self.ledger:
                self.ledger.add(entry)
                self.effects.append(entry)
        return True

    def settle(self, held: Mapping[int, int], token: int, fates: Mapping[str, str]) -> None:
        """A whole claim, given as id → receive count when it was claimed, by a handler with these fates per event."""
        ids = sorted(held)
        runnable = [i for i in ids if held[i] <= self.max_receives]
        for id_ in ids:
            if id_ not in runnable:
                self.bury(id_, token, "worker_crash", self.max_receives)
        if len(self.owned(runnable, token)) < len(runnable):
            self.put_back(ids, token, visible=True, charged=False)
            return
        blocked: set[str] = set()
        for id_ in runnable:
            delivery = self.deliveries[id_]
            known = (delivery.consumer, delivery.event) in self.ledger
            fate = OK if known else fates.get(delivery.event, OK)
            if delivery.key in blocked:
                self.put_back([id_], token, visible=True, charged=False)
            elif fate == OK:
                self.apply([id_], token)
            elif fate == PERMANENT or held[id_] >= self.max_receives:
                self.bury(id_, token, PERMANENT if fate == PERMANENT else "exhausted", held[id_])
            else:
                self.put_back([id_], token, visible=False, charged=True, failed=True)
                if delivery.consumer in self.ordered:
                    blocked.add(delivery.key)

    # --- Time, and an operator ----------------------------------------------------------------------------------

    def add(self, id_: int, consumer: str, event: str, key: str) -> None:
        self.deliveries[id_] = Delivery(id_, consumer, event, key)

    def run_out(self, *, leased: bool) -> None:
        """Every lease, or every backoff, ends."""
        for delivery in self.deliveries.values():
            if (delivery.token is not None) is leased:
                delivery.visible = True

    def renew(self, ids: Sequence[int], token: int) -> set[int]:
        mine = self.owned(ids, token)
        for id_ in mine:
            self.deliveries[id_].visible = False
        return set(mine)
