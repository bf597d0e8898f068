"""The model of what a worker does with its claim: ack, ledger and effect; failures; burials; farewells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.model.claiming import STOLEN
from tests.model.statespace import Step
from tests.model.variants import Broken
from tests.model.world import (
    COMMITTED,
    FAILED,
    HOLDS,
    LEAVES,
    NOBODY,
    SILENT,
    WORKS,
    Held,
    Row,
    Setup,
    Worker,
    World,
    put2,
    with_rows,
    with_worker,
)

FENCE = "I6: a write succeeds without the lease"
TWICE = "I3: an effect happens twice"
ORDER = "I5: an effect overtakes an earlier one of its key"


class Settling(Setup):
    def go_on(self, w: World, number: int, worker: Worker) -> Iterator[Step]:
        if worker.dying:
            yield self._bury(w, number, worker, worker.dying[0], crashed=True)
            return
        if self.lets_go:
            yield Step(f"worker {number} loses its connection", with_worker(w, number, leaving(worker)), fault=True)
        waiting = [held for held in worker.batches[0] if self.keys[held.message] in worker.blocked]
        if waiting:
            yield self._put_back(w, number, worker, waiting, charged=False)
        else:
            yield from self._begin(w, number, worker)

    # --- Ack, ledger and effect ---------------------------------------------------------------------------------

    def _begin(self, w: World, number: int, worker: Worker) -> Iterator[Step]:
        """The ack: delete by id range and token, write the ledger, learn what is new to it; nothing is committed."""
        batch = worker.batches[0]
        first, last, unfenced = batch[0].id, batch[-1].id, Broken.ACK_WITHOUT_TOKEN
        gone = [r for r in w.rows if r.sub == worker.sub and first <= r.id <= last and self.owns(r, number, unfenced)]
        ids = {row.id for row in gone}
        if ids & self.locked(w, worker.sub) or self._twin_at_work(w, number, worker, batch):
            return  # it waits
        names = ", ".join(str(held.id) for held in batch)
        if len(gone) < len(batch):
            if self.broken is not Broken.PART_OF_BATCH_LOST or not gone:
                yield Step(f"worker {number} finds the lease of {names} lost", with_worker(w, number, leaving(worker)))
                return
            batch = tuple(held for held in batch if held.id in ids)
        new = [held.message for held in batch if self._entry(worker, held.message) not in w.ledger]
        works = worker._replace(
            phase=WORKS,
            batches=(batch, *worker.batches[1:]),
            gone=tuple(row.id for row in gone),
            fresh=tuple(dict.fromkeys(new)),
        )
        yield Step(f"worker {number} begins on {names}", with_worker(w, number, works), broken=fence(gone, number))

    def _twin_at_work(self, w: World, number: int, worker: Worker, batch: Sequence[Held]) -> bool:
        """Another transaction is writing the same ledger row: ours waits for its end."""
        wanted = {self._entry(worker, held.message) for held in batch}
        others = (other for index, other in enumerate(w.workers) if index != number and other.phase == WORKS)
        return any(self._entry(other, message) in wanted for other in others for message in other.fresh)

    def _entry(self, worker: Worker, message: int) -> tuple[int, int]:
        return (0 if self.broken is Broken.LEDGER_BY_MESSAGE_ONLY else worker.sub, message)

    def handle(self, w: World, number: int, worker: Worker) -> Iterator[Step]:
        if self.poison in worker.fresh:
            yield Step(f"message {self.poison} kills worker {number}", self.idle(w, number, self.new_worker()))
            return
        yield self._commit(w, number, worker)
        if worker.half or not worker.fresh:
            return
        if self.lets_go:
            yield Step(f"worker {number} loses its connection", with_worker(w, number, leaving(worker)), fault=True)
        undone = worker._replace(gone=(), fresh=())
        batch = worker.batches[0]
        middle = len(batch) // 2
        if middle and (self.transient or self.permanent):
            halves = undone._replace(phase=HOLDS, batches=(batch[:middle], batch[middle:], *worker.batches[1:]))
            yield Step(f"worker {number}'s batch fails and is halved", with_worker(w, number, halves), fault=True)
            return
        for permanent, may in ((False, self.transient), (True, self.permanent)):
            if may and not middle:
                failed = undone._replace(phase=FAILED, permanent=permanent)
                what = f"worker {number} fails on {batch[0].id}{' for good' if permanent else ''}"
                yield Step(what, with_worker(w, number, failed), fault=True)

    def _commit(self, w: World, number: int, worker: Worker) -> Step:
        """Ack, ledger and effect in one; or, when broken, one of them in a transaction before the others."""
        ledger = w.ledger | {self._entry(worker, message) for message in worker.fresh}
        if self.broken is Broken.LEDGER_MISSING:
            ledger = w.ledger
        rows = tuple(row for row in w.rows if row.sub != worker.sub or row.id not in worker.gone)
        applied, broken = self._apply(w, worker)
        names = ", ".join(map(str, worker.gone))
        first = (
            {
                Broken.EFFECT_BEFORE_ACK: w._replace(applied=applied),
                Broken.ACK_BEFORE_EFFECT: w._replace(rows=rows, ledger=ledger),
                Broken.LEDGER_BEFORE_EFFECT: w._replace(ledger=ledger),
            }.get(self.broken)
            if self.broken
            else None
        )
        if first and worker.fresh and not worker.half:
            effect_is_first = self.broken is Broken.EFFECT_BEFORE_ACK
            half = with_worker(first, number, worker._replace(half=True))
            return Step(f"worker {number} commits half of {names}", half, broken=broken if effect_is_first else None)
        if worker.half and self.broken is Broken.EFFECT_BEFORE_ACK:
            broken = None  # it was said when the effect was committed
        done = worker._replace(phase=HOLDS, batches=worker.batches[1:], gone=(), fresh=(), half=False)
        after = w._replace(rows=rows, ledger=ledger, applied=applied)
        return Step(f"worker {number} commits {names}", self._hold(after, number, done), broken=broken)

    def _apply(self, w: World, worker: Worker) -> tuple[tuple[tuple[bool, ...], ...], str | None]:
        applied, broken = w.applied, None
        for message in worker.fresh:
            if applied[worker.sub][message]:
                broken = broken or TWICE
            for earlier in range(message):
                same_key = self.keys[earlier] == self.keys[message] and w.publishers[earlier][0] == COMMITTED
                if same_key and not applied[worker.sub][earlier] and not w.letters[worker.sub][earlier].written:
                    broken = broken or ORDER
            applied = put2(applied, worker.sub, message, True)
        return applied, broken

    # --- Failures -----------------------------------------------------------------------------------------------

    def settle_failure(self, w: World, number: int, worker: Worker) -> Step:
        (held,) = worker.batches[0]
        if worker.permanent or held.receives >= self.max_receives:
            return self._bury(w, number, worker, held, crashed=False)
        return self._put_back(w, number, worker, [held], charged=True)

    def _put_back(self, w: World, number: int, worker: Worker, back: Sequence[Held], *, charged: bool) -> Step:
        ids = {held.id for held in back}
        unfenced = Broken.PUT_BACK_WITHOUT_TOKEN
        hit = [row for row in w.rows if row.sub == worker.sub and row.id in ids and self.owns(row, number, unfenced)]
        blocked = worker.blocked
        if charged and self.broken is not Broken.LATER_ONES_GO_ON:
            blocked = blocking(blocked, *(self.keys[held.message] for held in back))
        rest = tuple(held for held in worker.batches[0] if held.id not in ids)
        after = worker._replace(
            phase=HOLDS,
            permanent=False,
            batches=(rest, *worker.batches[1:]) if rest else worker.batches[1:],
            blocked=blocked,
        )
        returned = with_rows(w, put_back(w.rows, hit, visible=not charged, charged=charged))
        what = f"worker {number} puts back {', '.join(map(str, sorted(ids)))}{'' if charged else ', uncharged'}"
        return Step(what, self._hold(returned, number, after), broken=fence(hit, number))

    def _bury(self, w: World, number: int, worker: Worker, held: Held, *, crashed: bool) -> Step:
        """Row out, letter in, at once. If the row is another's now, its key waits for what becomes of it there."""
        hit = [
            row
            for row in w.rows
            if row.sub == worker.sub and row.id == held.id and self.owns(row, number, Broken.BURY_WITHOUT_TOKEN)
        ]
        letter = w.letters[worker.sub][held.message]
        written = letter._replace(
            written=letter.written + 1,
            receives=held.receives if self.broken is Broken.REDRIVE_KEEPS_COUNT else 0,
            id=held.id if self.broken is Broken.REDRIVE_REUSES_ID else 0,
        )
        without = w._replace(rows=tuple(row for row in w.rows if row not in hit))
        with_letter = w._replace(letters=put2(w.letters, worker.sub, held.message, written))
        first = (
            {Broken.BURY_DELETES_FIRST: without, Broken.BURY_INSERTS_FIRST: with_letter}.get(self.broken)
            if self.broken
            else None
        )
        if first and hit and not worker.half:
            return Step(
                f"worker {number} half buries {held.id}", with_worker(first, number, worker._replace(half=True))
            )
        after = without
        if (hit and not worker.half) or (worker.half and self.broken is Broken.BURY_DELETES_FIRST):
            after = without._replace(letters=with_letter.letters)
        lost = not hit and not worker.half
        blocked = worker.blocked
        if lost and self.broken is not Broken.LOST_BURY_GOES_ON:
            blocked = blocking(blocked, self.keys[held.message])
        done = worker._replace(phase=HOLDS, permanent=False, half=False, blocked=blocked)
        done = done._replace(dying=worker.dying[1:]) if crashed else done._replace(batches=worker.batches[1:])
        what = f"worker {number} buries {held.id}{', but it is not its own any more' if lost else ''}"
        return Step(what, self._hold(after, number, done), broken=fence(hit, number))

    # --- Farewells ----------------------------------------------------------------------------------------------

    def give_back(self, w: World, number: int, worker: Worker) -> Iterator[Step]:
        """After a lost lease or connection, and at the end of a process: what is still its own, uncharged."""
        first, last, unfenced = worker.claimed[0].id, worker.claimed[-1].id, Broken.GIVE_BACK_WITHOUT_TOKEN
        hit = [r for r in w.rows if r.sub == worker.sub and first <= r.id <= last and self.owns(r, number, unfenced)]
        if {row.id for row in hit} & self.locked(w, worker.sub):
            return  # it waits
        after = with_rows(w, put_back(w.rows, hit, visible=True, charged=False))
        what = f"worker {number} gives back {', '.join(str(row.id) for row in hit) or 'nothing: all is lost'}"
        yield Step(what, self.idle(after, number, Worker(worker.marks)), broken=fence(hit, number))

    def rescue(self, w: World, number: int, worker: Worker) -> Step:
        """No such thing is in jobs/: a sweep that frees what a list, made earlier, says has run out."""
        ids = {held.id for held in worker.claimed}
        hit = [row for row in w.rows if row.id in ids]
        after = with_rows(w, put_back(w.rows, hit, visible=True, charged=True))
        stolen = STOLEN if any(row.token and not row.visible for row in hit) else None
        what = f"worker {number} rescues {', '.join(map(str, sorted(ids)))}"
        return Step(what, with_worker(after, number, Worker(worker.marks)), broken=stolen)

    def _hold(self, w: World, number: int, worker: Worker) -> World:
        """The worker goes on with its claim, or is idle when nothing of it is left."""
        if worker.dying or worker.batches:
            return with_worker(w, number, worker)
        return self.idle(w, number, Worker(worker.marks))

    def idle(self, w: World, number: int, worker: Worker) -> World:
        """Nobody holds this claim any more: what is still leased under it belongs to a silent one."""
        token = number + 1
        if self.broken is not Broken.TOKEN_PER_WORKER and any(row.token == token for row in w.rows):
            w = with_rows(w, tuple(row._replace(token=SILENT) if row.token == token else row for row in w.rows))
        return with_worker(w, number, worker)


def leaving(worker: Worker) -> Worker:
    return Worker(worker.marks, LEAVES, worker.sub, worker.claimed)


def blocking(blocked: tuple[str, ...], *keys: str) -> tuple[str, ...]:
    return tuple(sorted({*blocked, *keys}))


def fence(hit: Sequence[Row], number: int) -> str | None:
    return FENCE if any(row.token != number + 1 for row in hit) else None


def put_back(rows: tuple[Row, ...], hit: Sequence[Row], *, visible: bool, charged: bool) -> tuple[Row, ...]:
    less = 0 if charged else 1
    return tuple(
        row._replace(visible=visible, token=NOBODY, receives=row.receives - less, handed=row.handed - less)
        if row in hit
        else row
        for row in rows
    )
