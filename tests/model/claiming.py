"""The model of a claim: a look at the partition by one snapshot, then the rows locked and taken as they are now."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.statespace import Step
from tests.model.variants import Broken
from tests.model.world import (
    DRAWN,
    HOLDS,
    IDLE,
    LOCKED,
    LOOKED,
    NOBODY,
    RESCUES,
    Held,
    Mark,
    Row,
    Setup,
    Worker,
    World,
    name,
    put,
    with_rows,
    with_worker,
)

STOLEN = "I6: a live lease is taken"


class Claiming(Setup):
    def look(self, w: World, number: int, worker: Worker) -> Iterator[Step]:
        for sub in range(self.subs):
            window = [row for row in w.rows if row.sub == sub and row.id >= worker.marks[sub].low]
            if not window:
                continue
            learned = self._learn(w, worker, sub, window[0].id)
            chosen = self._choose(window, number)
            if chosen:
                held = tuple(Held(row.id, row.message, row.receives) for row in chosen)
                looked = learned._replace(phase=LOOKED, sub=sub, claimed=held)
                names = ", ".join(map(name, chosen))
                yield Step(f"worker {number} looks and chooses {names}", with_worker(w, number, looked))
            elif learned != worker:
                yield Step(f"worker {number} looks and finds nothing", with_worker(w, number, learned))
        if self.broken is Broken.RESCUE_UNGUARDED:
            expired = tuple(Held(row.id, row.message, 0) for row in w.rows if row.visible and row.token)
            if expired:
                rescuer = worker._replace(phase=RESCUES, claimed=expired)
                yield Step(f"worker {number} lists what to rescue", with_worker(w, number, rescuer))

    def _choose(self, window: list[Row], number: int) -> list[Row]:
        """A suspect alone if it is the oldest that may go, else the oldest batch of those that may."""
        clear: list[Row] = []
        suspects: list[Row] = []
        met: set[str] = set()
        stopped: set[str] = set()
        together = self.broken is Broken.CLAIM_SUSPECTS_TOGETHER
        for row in window:
            key = self.keys[row.message]
            visible, leased = self._sees(row, number), bool(row.token) and not together
            if not visible and self.broken is (
                Broken.HEAD_IGNORES_LEASED if row.token else Broken.HEAD_IGNORES_BACKOFF
            ):
                continue
            if visible and leased and key not in met:
                suspects.append(row)
            if not visible or leased:
                stopped.add(key)
            elif key not in stopped:
                clear.append(row)
            met.add(key)
        if suspects and (not clear or suspects[0].id < clear[0].id):
            return suspects[:1]
        return clear[: self.batch]

    def _sees(self, row: Row, number: int) -> bool:
        ahead = self.broken is Broken.CLAIM_BY_WORKERS_CLOCK and number == 1
        return row.visible or (ahead and row.token != NOBODY)

    def _learn(self, w: World, worker: Worker, sub: int, first: int) -> Worker:
        """What jobs/frontier.py notes: an oldest id is the mark once nobody runs any more who ran when it was seen."""
        if not self.marks or self.broken is Broken.MARK_IS_A_CURSOR:
            return worker
        if self.broken is Broken.MARK_UNGATED:
            return worker._replace(marks=put(worker.marks, sub, Mark(first)))
        low, candidate, running = worker.marks[sub]
        if candidate and not running:
            low, candidate = max(low, min(candidate, first)), 0
        if not candidate:
            candidate, running = (first, self._running(w)) if first > low else (0, 0)
        return worker._replace(marks=put(worker.marks, sub, Mark(low, candidate, running)))

    def _running(self, w: World) -> int:
        """Whom a snapshot taken now sees as running: those whose transaction has its id. One bit for each."""
        if self.broken is Broken.XID_AFTER_ID:
            return 0
        return sum(1 << m for m, (stage, _) in enumerate(w.publishers) if stage in (LOCKED, DRAWN))

    def take(self, w: World, number: int, worker: Worker) -> Step:
        locked = self.locked(w, worker.sub)
        rows = list(w.rows)
        place = {row.id: index for index, row in enumerate(rows) if row.sub == worker.sub}
        held: list[Held] = []
        skipped: set[str] = set()
        broken = None
        for wanted in worker.claimed:
            key = self.keys[wanted.message]
            row = rows[place[wanted.id]] if wanted.id in place else None
            if row is None or not self._lockable(row, wanted, number, locked):
                skipped.add(key)
            elif key not in skipped or self.broken is Broken.CLAIM_AFTER_A_SKIPPED_ROW:
                if (row.token and not row.visible) or row.id in locked:
                    broken = STOLEN
                counted = row.receives + (self.broken is not Broken.CLAIM_UNCOUNTED)
                receives, handed = min(counted, self.max_receives + 1), min(row.handed + 1, self.max_receives + 1)
                rows[place[row.id]] = row._replace(visible=False, token=number + 1, receives=receives, handed=handed)
                held.append(Held(row.id, row.message, receives))
        if not held:
            nothing = worker._replace(phase=IDLE, sub=0, claimed=())
            return Step(f"worker {number} finds them gone", with_worker(w, number, nothing))
        run = tuple(one for one in held if one.receives <= self.max_receives)
        claim = worker._replace(
            phase=HOLDS,
            claimed=tuple(held),
            dying=tuple(one for one in held if one.receives > self.max_receives),
            batches=(run,) if run else (),
        )
        if self.broken is Broken.MARK_IS_A_CURSOR:
            claim = claim._replace(marks=put(worker.marks, worker.sub, Mark(held[-1].id + 1)))
        after = with_worker(with_rows(w, tuple(rows)), number, claim)
        return Step(f"worker {number} takes {', '.join(str(one.id) for one in held)}", after, broken=broken)

    def _lockable(self, row: Row, wanted: Held, number: int, locked: set[int]) -> bool:
        """Whether it is still as it was seen. A row that was taken and given back has moved too; here it may be had."""
        if row.id in locked and self.broken is not Broken.CLAIM_IGNORES_LOCKS:
            return False
        same = self._sees(row, number) and row.receives == wanted.receives
        return same or self.broken is Broken.CLAIM_BY_OLD_SNAPSHOT
