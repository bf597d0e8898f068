"""What the model's world is made of: rows, marks, workers, letters, and the configuration of a search. No behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from tests.model.variants import Broken

NOBODY = 0  # a row's token: not leased
SILENT = 9  # leased under a claim that nobody holds any more; worker w's own claim is w + 1

# A publisher's stages.
WAITING, LOCKED, DRAWN, COMMITTED, ABORTED, HALF = range(6)
# A worker's phases.
IDLE, LOOKED, HOLDS, WORKS, FAILED, LEAVES, RESCUES = range(7)


class Row(NamedTuple):
    """A delivery. `receives` is what the table says, `handed` how often it was truly handed out; both are counted
    no further than one above the limit, where it makes no difference any more."""

    sub: int
    id: int
    message: int
    visible: bool
    token: int
    receives: int
    handed: int


class Mark(NamedTuple):
    """A low-water mark: from where to look, what may become it, and who was running when that was seen."""

    low: int = 0
    candidate: int = 0
    running: int = 0  # one bit for each publisher


class Held(NamedTuple):
    """A delivery as its holder remembers it."""

    id: int
    message: int
    receives: int


class Worker(NamedTuple):
    """What a worker's process knows. A crash leaves it idle with nothing, its marks included."""

    marks: tuple[Mark, ...]
    phase: int = IDLE
    sub: int = 0
    claimed: tuple[Held, ...] = ()
    dying: tuple[Held, ...] = ()  # received too often: to be buried, not run
    batches: tuple[tuple[Held, ...], ...] = ()
    blocked: tuple[str, ...] = ()  # keys whose later messages must go back
    gone: tuple[int, ...] = ()  # deleted, not yet committed: these rows are locked
    fresh: tuple[int, ...] = ()  # messages that the ledger did not have
    permanent: bool = False  # the failure to settle
    half: bool = False  # the first of two transactions that ought to be one is done


class Letter(NamedTuple):
    """A message's dead letters in one subscription. `receives` and `id` are kept only by variants that misuse them."""

    written: int = 0
    redriven: int = 0
    receives: int = 0
    id: int = 0


class World(NamedTuple):
    publishers: tuple[tuple[int, int], ...]  # per message: stage, id drawn
    said: frozenset[int]  # messages whose sender was told 202
    last_id: int
    rows: tuple[Row, ...]  # by subscription and id
    ledger: frozenset[tuple[int, int]]
    applied: tuple[tuple[bool, ...], ...]  # per subscription and message
    letters: tuple[tuple[Letter, ...], ...]  # per subscription and message
    workers: tuple[Worker, ...]


@dataclass(frozen=True)
class Setup:
    """One configuration. `keys`: a letter per message. `poison`: the message that kills whoever runs it, if any; then
    nothing else kills. The flags say which faults may happen; `broken`, which bug is planted."""

    keys: str = "aab"
    workers: int = 2
    subs: int = 1
    max_receives: int = 2
    batch: int = 2
    transient: bool = False
    permanent: bool = False
    crash: bool = False
    lets_go: bool = False
    late: bool = False  # publishers may be overtaken between lock, id and commit; else they publish in one step
    aborts: bool = False
    redrives: int = 0
    poison: int | None = None
    marks: bool = False
    broken: Broken | None = None
    symmetric: bool = False  # do not tell the two workers apart: half the states, but histories are hard to read

    def new_worker(self) -> Worker:
        return Worker(tuple(Mark() for _ in range(self.subs)))

    def locked(self, w: World, sub: int) -> set[int]:
        """Ids of rows that some transaction has deleted and not yet committed."""
        return {gone for worker in w.workers if worker.sub == sub for gone in worker.gone}

    def owns(self, row: Row, number: int, unfenced: Broken) -> bool:
        """Whether a fenced statement of this worker hits the row."""
        return row.token == number + 1 or self.broken is unfenced


Item = TypeVar("Item")


def put(items: tuple[Item, ...], index: int, item: Item) -> tuple[Item, ...]:
    return (*items[:index], item, *items[index + 1 :])


def put2(table: tuple[tuple[Item, ...], ...], row: int, column: int, item: Item) -> tuple[tuple[Item, ...], ...]:
    return put(table, row, put(table[row], column, item))


def with_worker(w: World, number: int, worker: Worker) -> World:
    workers = put(w.workers, number, worker)
    return World(w.publishers, w.said, w.last_id, w.rows, w.ledger, w.applied, w.letters, workers)


def with_rows(w: World, rows: tuple[Row, ...]) -> World:
    return World(w.publishers, w.said, w.last_id, rows, w.ledger, w.applied, w.letters, w.workers)


def name(row: Row) -> str:
    return f"{row.id} (message {row.message})"
