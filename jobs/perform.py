"""Deliveries of a subscription whose effect is outside our Postgres: many in flight, each settled when it is done.

Guarantee: no transaction is open while an effect happens; each effect is settled (ack, ledger, record) as soon as it is
known, so a crash repeats at most those whose answer had not been written. Leases are renewed every third of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from jobs import queue, tracing
from jobs.breaker import Breaker, Gate
from jobs.database import connection_is_lost
from jobs.errors import AwayError, LeaseLostError
from jobs.failures import bury_exhausted, settle_failure
from jobs.gauges.tally import tally
from jobs.messages import Message
from jobs.retry import Retry, wait_for_other_side
from jobs.subscriptions import External, Route

log = structlog.get_logger(__name__)
Held = tuple[queue.Claim, Message]
TWIN_SECONDS = 1.0  # how long a second delivery of the same event waits for the first


class Performance:
    """The effects one lane has under way. The lane's thread does all database work; the pool's threads do none."""

    def __init__(self, route: Route, handler: External, on_done: Callable[[], None]) -> None:
        self.route = route
        self.handler = handler
        self._on_done = on_done
        self._pool = ThreadPoolExecutor(max_workers=handler.at_once, thread_name_prefix=route.name)
        self._under_way: dict[Future[Any], Held] = {}
        self._started: dict[Future[Any], float] = {}
        self._renew_at = 0.0
        self._breaker = Breaker(handler.breaker) if handler.breaker else None
        self._probe: int | None = None  # our token for the one effect that tries whether the other side is well again
        self._probing: Future[Any] | None = None

    def gate(self) -> Gate:
        """What the breaker lets begin; a probe under way here keeps it shut for us."""
        if self._breaker is None:
            return Gate.CLOSED
        gate = self._breaker.gate()
        return Gate.SHUT if gate is Gate.PROBE and self._probe is not None else gate

    def take_probe(self) -> bool:
        """Whether we are the one to try with the next effect that begins."""
        assert self._breaker is not None
        self._probe = self._breaker.take_probe()
        return self._probe is not None

    def release_probe(self) -> None:
        """Give the probe to the next, if no effect began that could be it."""
        if self._breaker and self._probe is not None and self._probing is None:
            token, self._probe = self._probe, None
            self._breaker.release(token)

    def room(self, concurrency: int | None) -> int:
        """How many more effects may be started now; the operator may allow fewer than the route, not more."""
        at_once = min(concurrency or self.handler.at_once, self.handler.at_once)
        return max(at_once - len(self._under_way), 0)

    def start(self, claim: queue.Claim) -> None:
        """Begin the effects of a claim; what is already in the ledger or no longer wanted is settled at once."""
        try:
            runnable = self._first_of_each_event(claim, bury_exhausted(claim, self.route.name))
        except LeaseLostError:
            return
        if not runnable:
            return
        processed = queue.already_processed(self.route.name, runnable)
        wanted = [message for message in runnable if message.event_id not in processed]
        settled: list[tuple[Message, Any]] = [(message, None) for message in runnable if message.event_id in processed]
        try:
            tasks = self.handler.prepare(wanted) if wanted else []
        except Exception as error:
            if connection_is_lost(error):
                raise
            log.info("prepare.one_by_one", subscription=self.route.name, error=type(error).__name__)
            tasks = self._prepare_one_by_one(claim, wanted)
        self._renew_at = self._renew_at or self._next_renewal()
        for message, task in zip(wanted, tasks, strict=True):
            if task is None:
                settled.append((message, None))
            elif task is not _FAILED:
                perform = tracing.performing(self.route.name, message, self.handler.perform)
                future = self._pool.submit(perform, task)
                self._under_way[future] = (claim, message)
                self._started[future] = time.monotonic()
                if self._probe is not None and self._probing is None:
                    self._probing = future
                future.add_done_callback(lambda _: self._on_done())
        if settled:
            self._settle(claim, settled)

    def collect(self) -> int:
        """Settle the effects that are done; returns how many. Call it whenever `on_done` was called."""
        done = [future for future in self._under_way if future.done()]
        results: dict[int, tuple[queue.Claim, list[tuple[Message, Any]]]] = {}
        for future in done:
            claim, message = self._under_way[future]
            error = future.exception()
            if error is not None:
                self._fail(claim, message, error, waits=self._note_failure(message, error, future))
                del self._under_way[future]
            else:
                results.setdefault(claim.token, (claim, []))[1].append((message, future.result()))
        self._note_successes([future for future in done if future.exception() is None])
        for claim, pairs in results.values():
            self._settle(claim, pairs)
        for future in done:
            self._under_way.pop(future, None)
            self._started.pop(future, None)
        return len(done)

    def overdue(self, seconds: float) -> str | None:
        """The event of an effect that has taken longer than this, if any; read by the worker's main thread."""
        now = time.monotonic()
        late = [future for future, began in list(self._started.items()) if now - began > seconds and not future.done()]
        held = self._under_way.get(late[0]) if late else None
        return held[1].event_id if held else None

    def keep_leases(self) -> None:
        """Renew what is under way, in one statement, each third of a lease. Lost ones run on and settle nothing."""
        if not self._under_way or time.monotonic() < self._renew_at:
            return
        self._renew_at = self._next_renewal()
        kept = queue.renew(self._under_way.values())
        lost = [message.event_id for _, message in self._under_way.values() if message.id not in kept]
        if lost:
            log.warning("lease.lost", subscription=self.route.name, event_ids=lost)

    def idle(self) -> bool:
        return not self._under_way

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def wait(self, seconds: float) -> None:
        """Until one that is under way is done, but no longer than this; at once when none is."""
        wait(self._under_way, timeout=seconds, return_when=FIRST_COMPLETED)

    def not_under_way(self, claim: queue.Claim) -> list[Message]:
        """Those of a claim whose effect was not begun, because starting it was interrupted."""
        begun = {message.id for _, message in self._under_way.values()}
        return [message for message in claim.messages if message.id not in begun]

    def gather(self, seconds: float) -> None:
        """Until all that are under way are done, but no longer than this; at once when none is."""
        wait(self._under_way, timeout=seconds, return_when=ALL_COMPLETED)

    def close(self) -> None:
        """Wait for nothing more: what is under way ends by its own time limit, and its lease by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _settle(self, claim: queue.Claim, pairs: Sequence[tuple[Message, Any]]) -> None:
        try:
            self._settle_together(claim, pairs)
        except Exception as error:
            if connection_is_lost(error):
                raise
            if len(pairs) == 1:
                self._fail(claim, pairs[0][0], error)
                return
            log.info("settle.one_by_one", subscription=self.route.name, error=type(error).__name__)
            for pair in pairs:
                self._settle(claim, [pair])

    def _settle_together(self, claim: queue.Claim, pairs: Sequence[tuple[Message, Any]]) -> None:
        messages = [message for message, _ in pairs]
        with tracing.settle(self.route.name, messages), transaction.atomic():
            queue.note_retried(claim, self.route.name, messages)
            acked = queue.ack_some(claim, self.route.name, messages)
            if acked.gone == len(messages):  # else it may be another's to say
                queue.note_suppressed(self.route.name, messages, acked.fresh)
            fresh = [pair for pair in pairs if acked.fresh is None or pair[0].event_id in acked.fresh]
            if fresh:
                self.handler.record(fresh)
        tally.applied(claim.partition, messages)
        if acked.gone < len(messages):
            log.warning("lease.lost_after_effect", subscription=self.route.name, count=len(messages) - acked.gone)

    def _first_of_each_event(self, claim: queue.Claim, messages: list[Message]) -> list[Message]:
        """A second delivery of an event (a redrive clicked twice) waits until the first is in the ledger."""
        begun = {message.event_id for _, message in self._under_way.values()}
        first: list[Message] = []
        twins: list[Message] = []
        for message in messages:
            (twins if message.event_id in begun else first).append(message)
            begun.add(message.event_id)
        queue.put_back(claim, [queue.PutBack(message, delay=TWIN_SECONDS, charged=False) for message in twins])
        return first

    def _note_failure(self, message: Message, error: BaseException, future: Future[Any]) -> Retry | None:
        """Tell the breaker. How the delivery waits, where it is the other side that is unwell and not the message."""
        if self._breaker is None:
            return None
        if not isinstance(error, AwayError):
            self._note_successes([future])  # it answered, whatever it said
            return None
        until_probe = 0.0
        if error.whole:
            token = self._end_probe([future])
            until_probe = self._breaker.failed(str(error), retry_after=error.retry_after, token=token)
        age = self._breaker.seconds_since(message.published_at)
        if age > settings.AWAY_PATIENCE.total_seconds():
            return None
        return wait_for_other_side(
            age=age,
            retry_after=error.retry_after,
            until_probe=until_probe,
            longest=settings.AWAY_LONGEST_WAIT.total_seconds(),
            uniform=random.uniform,
        )

    def _note_successes(self, futures: Sequence[Future[Any]]) -> None:
        if self._breaker and futures:
            self._breaker.succeeded(len(futures), token=self._end_probe(futures))

    def _end_probe(self, futures: Sequence[Future[Any]]) -> int | None:
        """The probe's token, if it is one of these that was the probe."""
        if self._probing is None or self._probing not in futures:
            return None
        token, self._probe, self._probing = self._probe, None, None
        return token

    def _fail(self, claim: queue.Claim, message: Message, error: BaseException, *, waits: Retry | None = None) -> None:
        try:
            settle_failure(claim, self.route.name, message, error, waits=waits)
        except LeaseLostError:
            log.warning("lease.lost", subscription=self.route.name, event_ids=[message.event_id])

    def _prepare_one_by_one(self, claim: queue.Claim, messages: Sequence[Message]) -> list[Any]:
        tasks: list[Any] = []
        for message in messages:
            try:
                tasks.extend(self.handler.prepare([message]))
            except Exception as error:
                self._fail(claim, message, error)
                tasks.append(_FAILED)
        return tasks

    @staticmethod
    def _next_renewal() -> float:
        return time.monotonic() + settings.VISIBILITY_TIMEOUT.total_seconds() / 3


_FAILED = object()
