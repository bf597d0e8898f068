"""The real queue, driven call by call beside the reference: two workers, one publisher who may commit late.

After every call all that the database holds is compared with what it ought to hold. Time passes only when a rule says
so: leases and backoffs are an hour long, and end by UPDATE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from django.conf import settings
from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jobs import catalog, queue
from jobs.apply import Application
from jobs.errors import PermanentError, TransientError
from jobs.frontier import Frontier
from jobs.lanes import claim_from
from jobs.messages import Message, NewMessage
from jobs.outbox import publish
from jobs.subscriptions import Apply, load_routes
from tests.jobs.conftest import rows
from tests.model.redriving import redrive
from tests.model.reference import OK, PERMANENT, TRANSIENT, UNKNOWN, Reference

HOUR = 3600.0
CONSUMERS = ("strict", "second", "loose")
KEYS = ("a", "b", "c")
TYPES = ("thing.happened", "do_loosely")
PICK = st.integers(0, 1)  # which of the workers in question
FATES = st.sampled_from([OK, OK, OK, OK, TRANSIENT, UNKNOWN, PERMANENT])
COUNTS: Counter[str] = Counter()  # what happened in all runs together; the test wants to see some of everything


class UnknownError(Exception):
    retry_after = HOUR


@dataclass
class Worker:
    frontier: Frontier = field(default_factory=Frontier)
    claim: queue.Claim | None = None
    consumer: str = ""

    @property
    def held(self) -> dict[int, int]:
        return {m.id: m.receive_count for m in self.claim.messages} if self.claim else {}


class LatePublisher:
    """A publisher on a connection of its own, whose transaction stays open until it is told how to end."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._block = ExitStack()

    def begin(self, key: str, type_: str, count: int) -> list[str]:
        return self._thread.submit(self._begin, key, type_, count).result()

    def end(self, *, commit: bool) -> None:
        self._thread.submit(self._end, commit=commit).result()

    def close(self) -> None:
        self._thread.submit(_close_connection).result()
        self._thread.shutdown()

    def _begin(self, key: str, type_: str, count: int) -> list[str]:
        self._block.enter_context(transaction.atomic())
        return publish_locked([key] * count, type_)

    def _end(self, *, commit: bool) -> None:
        if not commit:
            transaction.set_rollback(True)
        self._block.close()


def _close_connection() -> None:
    connection.close()  # of the thread that runs this


def publish_locked(keys: Sequence[str], type_: str) -> list[str]:
    """As a service does it: first the rows that the messages are about, then the messages."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM model_key WHERE key = ANY(%s) ORDER BY key FOR NO KEY UPDATE", [list(keys)])
    return publish([NewMessage(type_, key, {}) for key in keys])


def record(consumer: str, messages: Sequence[Message]) -> None:
    with connection.cursor() as cursor:
        sql = "INSERT INTO model_effect (consumer, event_id) VALUES (%s, %s)"
        cursor.executemany(sql, [(consumer, message.event_id) for message in messages])


def handler(consumer: str, fates: dict[str, str]) -> Apply:
    """Writes its effects, then fails if one of its messages is fated to: what it wrote must be undone."""

    def handle(messages: Sequence[Message]) -> None:
        record(consumer, messages)
        for message in messages:
            match fates[message.event_id]:
                case "transient":
                    raise TransientError("503", retry_after=HOUR)
                case "unknown":
                    raise UnknownError
                case "permanent":
                    raise PermanentError("no such wine")

    return handle


BUSY = precondition(lambda self: any(worker.claim for worker in self.workers))
IDLE = precondition(lambda self: self.reference.deliveries and not all(worker.claim for worker in self.workers))


class QueueMachine(RuleBasedStateMachine):
    late_publisher: LatePublisher  # set by the test

    def __init__(self) -> None:
        super().__init__()
        with connection.cursor() as cursor:
            for table in ("jobs_message", "jobs_delivery", "processed_messages", "jobs_deadletter", "model_effect"):
                cursor.execute(f"DELETE FROM {table}")
        self.subscriptions = catalog.subscription_ids()
        self.reference = Reference({"strict", "second"}, settings.MAX_RECEIVES)
        self.workers = (Worker(), Worker())
        self.published: list[tuple[str, str, str]] = []  # event, key, type, in publication order
        self.late: tuple[str, str, list[str]] | None = None  # key, type, events of the transaction that is open
        self.redriven: Counter[tuple[str, str]] = Counter()

    def teardown(self) -> None:
        if self.late:
            self.end_late(commit=False)

    # --- Publishing ---------------------------------------------------------------------------------------------

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4), type_=st.sampled_from(TYPES))
    def publish_some(self, keys: list[str], type_: str) -> None:
        self.publish(keys, type_)

    def publish(self, keys: list[str], type_: str) -> None:
        keys = [key for key in keys if not self.late or key != self.late[0]]  # its publisher holds the lock
        with transaction.atomic():
            events = publish_locked(keys, type_)
        self.committed(list(zip(events, keys, strict=True)), type_)

    @precondition(lambda self: self.late is None)
    @rule(key=st.sampled_from(KEYS), type_=st.sampled_from(TYPES), count=st.integers(1, 2))
    def begin_late(self, key: str, type_: str, count: int) -> None:
        """Publish in a transaction that stays open: others will commit higher ids before it."""
        events = self.late_publisher.begin(key, type_, count)
        self.late = (key, type_, events)

    @precondition(lambda self: self.late is not None)
    @rule(commit=st.booleans())
    def end_late(self, *, commit: bool) -> None:
        assert self.late
        key, type_, events = self.late
        self.late = None
        self.late_publisher.end(commit=commit)
        if commit:
            COUNTS["late commits"] += 1
            self.committed([(event, key) for event in events], type_)

    def committed(self, pairs: Sequence[tuple[str, str]], type_: str) -> None:
        self.published += [(event, key, type_) for event, key in pairs]
        names = {id_: name for name, id_ in self.subscriptions.items()}
        events = [event for event, _ in pairs]
        found = rows("SELECT id, subscription_id, event_id, key FROM jobs_delivery WHERE event_id = ANY(%s)", events)
        wanted = [c for c in CONSUMERS if type_ in load_routes()[c].message_types]
        assert sorted((names[s], e) for _, s, e, _ in found) == sorted((c, e) for c in wanted for e in events)
        for id_, subscription, event, key in found:
            self.reference.add(id_, names[subscription], event, key)
            for worker in self.workers:
                assert id_ >= worker.frontier.mark((subscription, 0)), "a mark has passed a delivery that appeared"
        for consumer in wanted:
            appeared = [e for i, s, e, _ in sorted(found) if names[s] == consumer]
            assert appeared == events, "ids do not ascend in the order published"

    # --- Claiming -----------------------------------------------------------------------------------------------

    @IDLE
    @rule(pick=PICK, which=st.integers(0, 2), batch=st.integers(1, 4))
    def claim(self, pick: int, which: int, batch: int) -> None:
        self.claim_something(pick, which, batch)

    @IDLE
    @rule(pick=PICK, which=st.integers(0, 2), batch=st.integers(1, 4), data=st.data())
    def claim_and_settle(self, pick: int, which: int, batch: int, data: st.DataObject) -> None:
        worker = self.claim_something(pick, which, batch)
        if worker.claim:
            self.settle_claim(worker, data)

    def claim_something(self, pick: int, which: int, batch: int) -> Worker:
        idle = [worker for worker in self.workers if not worker.claim]
        worker = idle[pick % len(idle)]
        offered = [c for c in CONSUMERS if self.reference.claimable(c, batch=1, window=1_000, past=())] or CONSUMERS
        self.claim_for(worker, offered[which % len(offered)], batch)
        return worker

    @precondition(lambda self: sum(bool(worker.claim) for worker in self.workers) == 1)
    @rule(batch=st.integers(1, 4), times=st.integers(1, 4), data=st.data())
    def take_over(self, batch: int, times: int, data: st.DataObject) -> None:
        """A worker falls asleep; its leases end; another takes what it had, dies, and so on. The first may wake up."""
        asleep, awake = sorted(self.workers, key=lambda worker: not worker.claim)
        for _ in range(times):
            self.run_out(leased=True)
            awake.claim = None
            self.claim_for(awake, asleep.consumer, batch)
        if data.draw(st.booleans(), label="wakes up"):
            self.settle_claim(asleep, data)

    def claim_for(self, worker: Worker, consumer: str, batch: int) -> None:
        """As a lane does: look again as long as the last look says that it is worth it."""
        partition = (self.subscriptions[consumer], 0)
        route = replace(load_routes()[consumer], batch=batch)
        again = True
        while again and not worker.claim:
            past = worker.frontier.blocked(partition)
            window = worker.frontier.window(partition, batch)
            expected = self.reference.claimable(consumer, batch=batch, window=window, past=past)
            claim, again = claim_from(worker.frontier, partition, route, batch)
            assert [m.id for m in claim.messages] == expected
            COUNTS["claims past blocked keys"] += bool(past and expected)
            suspects = self.reference.suspects(expected)
            COUNTS["suspects"] += len(suspects)
            assert not suspects or len(expected) == 1
            if claim.messages:
                COUNTS["claims"] += 1
                worker.claim, worker.consumer = claim, consumer
                self.reference.take(expected, claim.token)
                receives = [self.reference.deliveries[i].receives for i in expected]
                assert [m.receive_count for m in claim.messages] == receives

    @precondition(lambda self: not self.late and not all(worker.claim for worker in self.workers))
    @rule(pick=PICK, key=st.sampled_from(KEYS), backlog=st.integers(2, 6))
    def a_hot_key_waits(self, pick: int, key: str, backlog: int) -> None:
        """Its first delivery is in backoff, its backlog fills the window; the others must not wait for it."""
        others = [other for other in KEYS if other != key]
        self.publish([key] * backlog + others, "thing.happened")
        ours = sorted(i for i, d in self.reference.deliveries.items() if (d.consumer, d.key) == ("strict", key))
        first = self.reference.deliveries[ours[0]]
        if first.token is None:
            first.visible = False
            with connection.cursor() as cursor:
                cursor.execute("UPDATE jobs_delivery SET visible_at = 'infinity' WHERE id = %s", [first.id])
        idle = [worker for worker in self.workers if not worker.claim]
        self.claim_for(idle[pick % len(idle)], "strict", 1)

    @rule(pick=PICK)
    def sweep(self, pick: int) -> None:
        self.workers[pick].frontier.look_from_the_front()

    # --- Settling -----------------------------------------------------------------------------------------------

    @BUSY
    @rule(pick=PICK, data=st.data())
    def settle(self, pick: int, data: st.DataObject) -> None:
        self.settle_claim(self.busy(pick), data)

    def settle_claim(self, worker: Worker, data: st.DataObject) -> None:
        """The whole of a claim through jobs.apply, with a handler that fails on demand."""
        assert worker.claim
        fates = {m.event_id: data.draw(FATES, label=m.event_id) for m in worker.claim.messages}
        self.count_zombie(worker)
        route = load_routes()[worker.consumer]
        Application(route, handler(route.name, fates), worker.claim, lambda: False).run()
        self.reference.settle(worker.held, worker.claim.token, fates)
        worker.claim = None

    @BUSY
    @rule(pick=PICK, share=st.integers(1, 4))
    def ack_the_first(self, pick: int, share: int) -> None:
        """The first of a claim in one transaction, by hand; if some are lost, the transaction is rolled back."""
        worker = self.busy(pick)
        assert worker.claim
        if max(worker.held.values()) > settings.MAX_RECEIVES:
            return  # it is to be buried, not run
        self.count_zombie(worker)
        messages = worker.claim.messages[:share]
        with transaction.atomic():
            acked = queue.ack(worker.claim, worker.consumer, messages)
            if acked.gone < len(messages):
                transaction.set_rollback(True)
            else:
                fresh = messages if acked.fresh is None else [m for m in messages if m.event_id in acked.fresh]
                record(worker.consumer, list({m.event_id: m for m in fresh}.values()))
        applied = self.reference.apply([m.id for m in messages], worker.claim.token)
        assert applied == (acked.gone == len(messages))
        self.keep(worker, worker.claim.messages[share:] if applied else worker.claim.messages)

    @BUSY
    @rule(pick=PICK, keep=st.integers(0, 3), charged=st.booleans(), delay=st.sampled_from([0.0, HOUR]))
    def put_back_the_last(self, pick: int, keep: int, *, charged: bool, delay: float) -> None:
        worker = self.busy(pick)
        assert worker.claim
        back = worker.claim.messages[keep:]
        count = queue.put_back(worker.claim, [queue.PutBack(m, delay=delay, charged=charged) for m in back])
        ids = [m.id for m in back]
        assert count == self.reference.put_back(ids, worker.claim.token, visible=not delay, charged=charged)
        self.keep(worker, worker.claim.messages[:keep])

    @BUSY
    @rule(pick=PICK)
    def bury_the_first(self, pick: int) -> None:
        worker = self.busy(pick)
        assert worker.claim
        self.count_zombie(worker)
        first, *rest = worker.claim.messages
        burial = queue.Burial("permanent", "Error", "by hand", "", min(first.receive_count, settings.MAX_RECEIVES))
        letter = queue.bury(worker.claim, worker.consumer, first, burial)
        buried = self.reference.bury(first.id, worker.claim.token, "permanent", burial.receives)
        assert (letter is not None) == buried
        if buried:
            self.keep(worker, rest)
        else:
            self.leave(worker)

    @BUSY
    @rule(pick=PICK)
    def give_back(self, pick: int) -> None:
        worker = self.busy(pick)
        assert worker.claim
        self.leave(worker)

    def leave(self, worker: Worker) -> None:
        assert worker.claim
        count = queue.give_back_claim(worker.claim)
        ids = list(worker.held)
        assert count == self.reference.put_back(ids, worker.claim.token, visible=True, charged=False)
        worker.claim = None

    @BUSY
    @rule(pick=PICK)
    def renew(self, pick: int) -> None:
        worker = self.busy(pick)
        assert worker.claim
        kept = queue.renew([(worker.claim, m) for m in worker.claim.messages])
        assert kept == self.reference.renew(list(worker.held), worker.claim.token)

    @BUSY
    @rule(pick=PICK)
    def die(self, pick: int) -> None:
        worker = self.busy(pick)
        COUNTS["silent deaths"] += 1
        worker.claim, worker.frontier = None, Frontier()

    def busy(self, pick: int) -> Worker:
        busy = [worker for worker in self.workers if worker.claim]
        return busy[pick % len(busy)]

    def keep(self, worker: Worker, messages: list[Message]) -> None:
        assert worker.claim
        worker.claim = replace(worker.claim, messages=list(messages)) if messages else None

    def count_zombie(self, worker: Worker) -> None:
        assert worker.claim
        owned = self.reference.owned(list(worker.held), worker.claim.token)
        COUNTS["zombies refused"] += len(owned) < len(worker.held)

    # --- Time, and an operator ----------------------------------------------------------------------------------

    @rule(leased=st.sampled_from([True, True, False]))
    def run_out(self, *, leased: bool) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE jobs_delivery SET visible_at = clock_timestamp() - interval '1 ms'"
                f" WHERE lease_token IS {'NOT ' if leased else ''}NULL"
            )
        self.reference.run_out(leased=leased)

    @precondition(lambda self: self.reference.letters)
    @rule(data=st.data())
    def redrive(self, data: st.DataObject) -> None:
        letters = rows("SELECT id, subscription_name, event_id, key FROM jobs_deadletter ORDER BY id")
        letter, consumer, event, key = data.draw(st.sampled_from(letters), label="letter")
        with transaction.atomic():
            self.reference.add(redrive(letter), consumer, event, key)
        self.redriven[consumer, event] += 1
        COUNTS["redrives"] += 1

    # --- What must hold after every call ------------------------------------------------------------------------

    @invariant()
    def count(self) -> None:
        COUNTS["steps"] += 1

    @invariant()
    def the_table_holds_what_it_ought_to(self) -> None:
        names = {id_: name for name, id_ in self.subscriptions.items()}
        held = [
            (id_, names[subscription], *rest)
            for id_, subscription, *rest in rows(
                "SELECT id, subscription_id, event_id, key, visible_at <= clock_timestamp(), lease_token,"
                " receive_count, coalesce(jsonb_array_length(failures), 0) FROM jobs_delivery ORDER BY id"
            )
        ]
        ours = [self.reference.deliveries[i] for i in sorted(self.reference.deliveries)]
        assert held == [(d.id, d.consumer, d.event, d.key, d.visible, d.token, d.receives, d.failures) for d in ours]

    @invariant()
    def effects_and_ledger_are_what_they_ought_to_be(self) -> None:
        effects = rows("SELECT consumer, event_id FROM model_effect ORDER BY id")
        assert effects == self.reference.effects
        assert len(effects) == len(set(effects)), "an effect happened twice"
        ledger = rows("SELECT consumer_name, event_id FROM processed_messages")
        assert sorted(ledger) == sorted(effects), "effect and ledger are one"

    @invariant()
    def dead_letters_are_what_they_ought_to_be(self) -> None:
        found = rows(
            "SELECT subscription_name, event_id, cause, receive_count, jsonb_array_length(failures)"
            " FROM jobs_deadletter ORDER BY id"
        )
        assert found == [
            (letter.consumer, letter.event, letter.cause, letter.receives, letter.failures)
            for letter in self.reference.letters
        ]

    @invariant()
    def nothing_is_lost_and_no_key_is_out_of_order(self) -> None:
        """Told from the publications alone, without the reference."""
        waiting = Counter(
            rows("SELECT s.name, d.event_id FROM jobs_delivery d JOIN jobs_subscription s ON s.id = d.subscription_id")
        )
        effects = rows("SELECT consumer, event_id FROM model_effect ORDER BY id")
        letters = Counter(rows("SELECT subscription_name, event_id FROM jobs_deadletter"))
        for consumer in CONSUMERS:
            for event, _, type_ in self.published:
                if type_ in load_routes()[consumer].message_types:
                    one = (consumer, event)
                    assert waiting[one] or letters[one] or one in effects, "lost"
                    assert waiting[one] + letters[one] + (one in effects) <= 1 + self.redriven[one], "doubled"
        number = {event: n for n, (event, _, _) in enumerate(self.published)}
        key_of = {event: key for event, key, _ in self.published}
        for consumer in self.reference.ordered:
            for key in KEYS:
                seen = [
                    number[event]
                    for name, event in effects
                    if name == consumer and key_of[event] == key and not letters[consumer, event]
                ]
                assert seen == sorted(seen), "out of order"
