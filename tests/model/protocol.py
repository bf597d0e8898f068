"""The queue's protocol as a model: publishers, workers with their claims, leases, failures, dead letters, redrives.

Each step is one statement, one COMMIT, one fault or one passing of time in jobs/; between any two steps every other
actor may act. So a paused worker needs no step of its own: the others go on, its lease ends, and it wakes up. Time
has no length: what is hidden may become visible at any moment. A claim is two steps, because its snapshot may be
older than the rows it locks. The window is never full here: widening it concerns speed and is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.claiming import Claiming
from tests.model.settling import Settling
from tests.model.statespace import State, Step
from tests.model.variants import Broken
from tests.model.world import (
    ABORTED,
    COMMITTED,
    DRAWN,
    FAILED,
    HALF,
    HOLDS,
    IDLE,
    LEAVES,
    LOCKED,
    LOOKED,
    NOBODY,
    RESCUES,
    SILENT,
    WAITING,
    WORKS,
    Letter,
    Row,
    World,
    name,
    put,
    put2,
    with_rows,
)

# What a delivery counts for while a worker is between two transactions that ought to be one.
IN_HAND = {
    Broken.ACK_BEFORE_EFFECT: 1,
    Broken.EFFECT_BEFORE_ACK: -1,
    Broken.BURY_DELETES_FIRST: 1,
    Broken.BURY_INSERTS_FIRST: -1,
}


class Protocol(Claiming, Settling):
    """The whole: `initial`, `steps`, `broken_rule` and `is_done` are what a search asks."""

    def initial(self) -> World:
        each = range(len(self.keys))
        return World(
            publishers=tuple((WAITING, 0) for _ in each),
            said=frozenset(),
            last_id=0,
            rows=(),
            ledger=frozenset(),
            applied=tuple(tuple(False for _ in each) for _ in range(self.subs)),
            letters=tuple(tuple(Letter() for _ in each) for _ in range(self.subs)),
            workers=tuple(self.new_worker() for _ in range(self.workers)),
        )

    def steps(self, state: State) -> Iterator[Step]:
        assert isinstance(state, World)
        for message, (stage, _) in enumerate(state.publishers):
            if stage not in (COMMITTED, ABORTED):
                yield from self._publish(state, message)
        yield from self._pass_time(state)
        if self.redrives:
            yield from self._redrive(state)
        for number in range(self.workers):
            if number and self.symmetric and state.workers[number] == state.workers[0]:
                continue  # it would do what the first does
            yield from self._work(state, number)

    def same(self, state: State) -> State:
        """One state for all that differ only in which worker is which."""
        assert isinstance(state, World)
        if not self.symmetric or state.workers[0] <= state.workers[1]:
            return state
        other = {1: 2, 2: 1}
        rows = tuple(row._replace(token=other[row.token]) if row.token in other else row for row in state.rows)
        return state._replace(rows=rows, workers=(state.workers[1], state.workers[0]))

    def _work(self, w: World, number: int) -> Iterator[Step]:
        worker = w.workers[number]
        if worker.phase == IDLE:
            yield from self.look(w, number, worker)
        elif worker.phase == LOOKED:
            yield self.take(w, number, worker)
        elif worker.phase == HOLDS:
            yield from self.go_on(w, number, worker)
        elif worker.phase == WORKS:
            yield from self.handle(w, number, worker)
        elif worker.phase == FAILED:
            yield self.settle_failure(w, number, worker)
        elif worker.phase == LEAVES:
            yield from self.give_back(w, number, worker)
        elif worker.phase == RESCUES:
            yield self.rescue(w, number, worker)
        if self.crash and worker.phase not in (IDLE, LOOKED):
            yield Step(f"worker {number} dies", self.idle(w, number, self.new_worker()), fault=True)

    def is_done(self, state: State) -> bool:
        assert isinstance(state, World)
        return not state.rows and all(worker.phase == IDLE for worker in state.workers)

    def broken_rule(self, state: State) -> str | None:
        """The rules that a state must keep; those of a step are checked where the step is made."""
        assert isinstance(state, World)
        alive = self._in_hand(state)
        for row in state.rows:
            alive[row.sub][row.message] += 1
            if row.receives != row.handed:
                return "I7: the receive count is not how often it was handed out"
        for message, (stage, _) in enumerate(state.publishers):
            if stage == ABORTED and message in state.said:
                return "I1: acknowledged, and not there"
            if stage != COMMITTED:
                continue
            for sub in range(self.subs):
                letter, applied = state.letters[sub][message], state.applied[sub][message]
                lives, given = alive[sub][message] + letter.written, 1 + letter.redriven
                if applied and lives >= given:
                    return "I3: applied, and yet to be applied or dead-lettered"
                if not applied and lives != given:
                    return "I1: neither applied nor waiting nor dead-lettered, or twice"
                if self.poison is not None and letter.written and message != self.poison:
                    return "I7: dead-lettered for what another message did"
        return None

    def _in_hand(self, w: World) -> list[list[int]]:
        count = [[0] * len(self.keys) for _ in range(self.subs)]
        for worker in w.workers:
            if worker.half and self.broken:
                messages = worker.fresh if worker.phase == WORKS else (worker.batches[0][0].message,)
                for message in messages:
                    count[worker.sub][message] += IN_HAND.get(self.broken, 0)
        return count

    # --- Publishers: lock the key (which gives the transaction its id), draw the delivery's id, commit ----------

    def _publish(self, w: World, message: int) -> Iterator[Step]:
        stage, drawn = w.publishers[message]
        who = f"publisher {message}"
        if not self.late:
            if self._may_lock(w, message):
                drew = self._stage(w, message, DRAWN, w.last_id + 1)._replace(last_id=w.last_id + 1)
                yield Step(f"{who} publishes", self._insert(drew, message))
            return
        id_first = self.broken is Broken.ID_BEFORE_LOCK
        if stage == LOCKED or (id_first and not drawn):
            after = self._stage(w, message, WAITING if id_first else DRAWN, w.last_id + 1)
            yield Step(f"{who} draws id {w.last_id + 1}", after._replace(last_id=w.last_id + 1))
        elif stage == WAITING and self._may_lock(w, message):
            locked = self._stage(w, message, DRAWN if id_first else LOCKED, drawn)
            yield Step(f"{who} locks key {self.keys[message]}", locked)
        elif stage == DRAWN:
            if self.broken is Broken.OUTBOX_ON_COMMIT:
                yield Step(f"{who} commits its change", self._stage(w, message, HALF, drawn))
            else:
                yield Step(f"{who} commits", self._insert(w, message))
            if self.broken is Broken.SAID_BEFORE_COMMIT and message not in w.said:
                yield Step(f"{who} says 202", w._replace(said=w.said | {message}))
            if self.aborts:
                yield Step(f"{who} aborts", self._stage(w, message, ABORTED, 0), fault=True)
        elif stage == HALF:
            yield Step(f"{who} sends what it kept until after its commit", self._insert(w, message))
            yield Step(f"{who} dies after its commit", self._stage(w, message, COMMITTED, drawn), fault=True)

    def _may_lock(self, w: World, message: int) -> bool:
        """One key's publishers go one after another; in order of their numbers, since their names mean nothing."""
        earlier = (other for other in range(message) if self.keys[other] == self.keys[message])
        return all(w.publishers[other][0] in (COMMITTED, ABORTED, HALF) for other in earlier)

    def _stage(self, w: World, message: int, stage: int, drawn: int) -> World:
        after = w._replace(publishers=put(w.publishers, message, (stage, drawn)))
        if not self.marks or stage not in (COMMITTED, ABORTED):
            return after
        # Its transaction is over: no later snapshot has it among those that run.
        workers = [
            worker._replace(marks=tuple(mark._replace(running=mark.running & ~(1 << message)) for mark in worker.marks))
            for worker in w.workers
        ]
        return after._replace(workers=tuple(workers))

    def _insert(self, w: World, message: int) -> World:
        drawn = w.publishers[message][1]
        rows = [Row(sub, drawn, message, True, NOBODY, 0, 0) for sub in range(self.subs)]
        after = w._replace(rows=tuple(sorted([*w.rows, *rows])), said=w.said | {message})
        return self._stage(after, message, COMMITTED, 0)

    # --- Time, and an operator's redrive ------------------------------------------------------------------------

    def _pass_time(self, w: World) -> Iterator[Step]:
        # Blame is promised to who keeps time: no lease of a live worker runs out.
        punctual = self.poison is not None
        for index, row in enumerate(w.rows):
            if not row.visible and (not punctual or row.token in (NOBODY, SILENT)):
                after = with_rows(w, put(w.rows, index, row._replace(visible=True)))
                yield Step(f"the {'lease' if row.token else 'backoff'} of {name(row)} ends", after)

    def _redrive(self, w: World) -> Iterator[Step]:
        for sub in range(self.subs):
            for message, letter in enumerate(w.letters[sub]):
                if not letter.written or letter.redriven == self.redrives:
                    continue
                new_id = letter.id if self.broken is Broken.REDRIVE_REUSES_ID else w.last_id + 1
                receives = letter.receives if self.broken is Broken.REDRIVE_KEEPS_COUNT else 0
                row = Row(sub, new_id, message, True, NOBODY, receives, 0)
                forgets = {(sub, message)} if self.broken is Broken.REDRIVE_CLEARS_LEDGER else set()
                after = w._replace(
                    rows=tuple(sorted([*w.rows, row])),
                    last_id=max(w.last_id, new_id),
                    ledger=w.ledger - forgets,
                    letters=put2(w.letters, sub, message, letter._replace(redriven=letter.redriven + 1)),
                )
                yield Step(f"an operator redrives message {message} as {name(row)}", after, fault=True)
