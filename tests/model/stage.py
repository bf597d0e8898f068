"""What the scenarios of the mutation tests are played with: publish, claim, settle, a second session, a death."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection, transaction

from jobs import lanes, queue
from jobs.apply import Application
from jobs.errors import PermanentError, TransientError
from jobs.frontier import Frontier
from jobs.messages import Message, NewMessage
from jobs.models import Subscription
from jobs.outbox import publish
from jobs.subscriptions import Apply, load_routes
from tests.faults.crash import Points, counted
from tests.jobs.conftest import make_visible, rows
from tests.jobs.routes import record_effects
from tests.model.planting import CLAIMS, edited

DEADLINE = 20.0
Answer = TypeVar("Answer")


def promise(kept: object, rule: str) -> None:
    """`rule` begins with the invariant's number; a mutation must break the one that its table entry names."""
    if not kept:
        raise AssertionError(rule)


def reset() -> None:
    """An empty queue of one partition each, so that a scenario's deliveries meet in one window."""
    Subscription.objects.update(partitions=1)
    with connection.cursor() as cursor:
        for table in ("jobs_message", "jobs_delivery", "processed_messages", "jobs_deadletter", "test_effect"):
            cursor.execute(f"DELETE FROM {table}")


def send(*keys: str, type_: str = "do_loosely") -> list[str]:
    """Publish one message per key. `do_loosely` goes to “loose”, `thing.happened` to “strict” and “second”."""
    with transaction.atomic():
        return publish([NewMessage(type_, key, {}) for key in keys])


def partition(name: str) -> queue.Partition:
    return (Subscription.objects.get(name=name).pk, 0)


def claim(name: str, *, batch: int = 20, mark: int = 0, company: int = queue.ALONE) -> queue.Claim:
    ordered = load_routes()[name].ordered
    return queue.claim(partition(name), ordered=ordered, batch=batch, window=100, mark=mark, company=company)


def settle(name: str, held: queue.Claim, handler: Apply = record_effects) -> int:
    return Application(load_routes()[name], handler, held, lambda: False).run()


def failing(event: str, error: Exception) -> Apply:
    """A handler that fails on one event and applies the others."""

    def handle(messages: Sequence[Message]) -> None:
        record_effects(messages)
        if any(message.event_id == event for message in messages):
            raise error

    return handle


def transient() -> TransientError:
    return TransientError("503", retry_after=3_600)


def permanent() -> PermanentError:
    return PermanentError("no such wine")


def empty(name: str, handler: Apply = record_effects, *, rounds: int = 20) -> None:
    """Let all leases and backoffs end, claim and settle, until nothing is left; gives up quietly."""
    for _ in range(rounds):
        make_visible()
        held = claim(name)
        if not held.messages:
            return
        settle(name, held, handler)


def take_over(name: str) -> tuple[queue.Claim, queue.Claim]:
    """Two claims of the same deliveries: the sleeper's, whose lease has ended, and its heir's."""
    sleeper = claim(name)
    make_visible()
    return sleeper, claim(name)


def delivery(event: str, name: str = "loose") -> tuple[Any, ...] | None:
    """(receive count, token, whether visible) of an event's delivery, or None."""
    found = rows(
        "SELECT receive_count, lease_token, visible_at <= clock_timestamp() FROM jobs_delivery"
        " WHERE event_id = %s AND subscription_id = %s ORDER BY id DESC",
        event,
        partition(name)[0],
    )
    return found[0] if found else None


def database_time() -> Any:
    return rows("SELECT clock_timestamp()")[0][0]


# --- A second session ---------------------------------------------------------------------------------------------


class Elsewhere:
    """Another process, as far as the database can tell: a thread with a connection of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)

    def start(self, act: Callable[[], Answer]) -> Future[Answer]:
        return self._thread.submit(act)

    def run(self, act: Callable[[], Answer]) -> Answer:
        return self.start(act).result(DEADLINE)

    def close(self) -> None:
        self._thread.submit(_close_connection).result(DEADLINE)
        self._thread.shutdown()


def _close_connection() -> None:
    connection.close()  # of the thread that runs this


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    other = Elsewhere()
    try:
        yield other
    finally:
        other.close()


class Open:
    """A transaction in another session that stays open after `act`, until it is told how to end."""

    def __init__(self, other: Elsewhere, act: Callable[[], Any]) -> None:
        self._other = other
        self._block = transaction.atomic()
        other.run(lambda: self._begin(act))

    def _begin(self, act: Callable[[], Any]) -> None:
        self._block.__enter__()
        act()

    def end(self, *, commit: bool = True) -> None:
        self._other.run(lambda: self._end(commit=commit))

    def _end(self, *, commit: bool) -> None:
        if not commit:
            transaction.set_rollback(True)
        self._block.__exit__(None, None, None)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.005)


GATE = 20_260_314  # an advisory lock; the number means nothing


@contextmanager
def a_claim_stalled_after_its_snapshot(name: str) -> Iterator[Callable[[], queue.Claim]]:
    """Start a claim in another session and hold it between its snapshot and its locks. Call the result to let it go on.

    The statement is the one that queue.py has at this moment, mutated or not, with a wait built into its middle.
    """
    gate = f"AS wholly FROM win, (SELECT pg_advisory_xact_lock_shared({GATE})) gate"
    gated = {sql: edited(getattr(queue, sql), "AS wholly FROM win", gate) for sql in CLAIMS}
    with elsewhere() as other, connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [GATE])
        saved = {sql: getattr(queue, sql) for sql in gated}
        for sql, text in gated.items():
            setattr(queue, sql, text)
        stalled = other.start(lambda: claim(name))
        try:
            wait_until(_somebody_waits_at_the_gate, "the claim to take its snapshot")
        finally:
            for sql, text in saved.items():
                setattr(queue, sql, text)

        def go_on() -> queue.Claim:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [GATE])
            return stalled.result(DEADLINE)

        try:
            yield go_on
        finally:
            cursor.execute("SELECT pg_advisory_unlock_all()")


def _somebody_waits_at_the_gate() -> bool:
    return bool(rows("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted", GATE))


def claim_with_mark(frontier: Frontier, name: str) -> queue.Claim:
    """A claim as a lane makes it, with that lane's low-water mark."""
    return lanes.claim_from(frontier, partition(name), load_routes()[name], 20)[0]


# The mark needs two looks, the second after all that ran at the first has ended. Five times that is plenty.
TURNS = 5


def move_mark_past(frontier: Frontier, name: str, delivery: int, *, seconds: float = 60.0) -> bool:
    """Work until the mark has passed this delivery; whether it did. Transactions anywhere on the server delay it, and
    nothing else may: it is given up when all that ran has ended so and so many times."""
    deadline = time.monotonic() + seconds
    turns, running = 0, 0
    while frontier.mark(partition(name)) <= delivery:
        ((oldest, newest),) = rows(
            "SELECT pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint FROM pg_current_snapshot() s"
        )
        if oldest >= running:
            turns, running = turns + 1, newest
        if turns > TURNS or time.monotonic() > deadline:
            return False
        send("b")
        settle(name, claim_with_mark(frontier, name))
    return True


# --- A death ------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here: nothing may catch it, and what was not committed is rolled back."""


class Death(Points):
    def reach(self, when: str) -> None:
        if when == "before":
            self.seen += 1
        if self.seen == self.number and self.when == when:
            connection.connection.rollback()  # as the server does when a client is gone
            raise Killed


def dies_at(number: int, when: str, act: Callable[[], Any]) -> bool:
    """Run `act` and kill it before or after its n-th statement or COMMIT; whether it had as many."""
    try:
        with counted(Death(number, when)):
            act()
    except Killed:
        connection.close()
        return True
    return False
