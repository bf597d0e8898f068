"""One claim of a subscription whose effects are in our Postgres, from claim to settlement.

Guarantee: ack, ledger, effect and follow-up messages commit together, or none of them. If a batch fails it is halved
until the failing messages stand alone, in order; those are settled by failures.py, their mates are applied.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog
from django.conf import settings
from django.db import transaction

from jobs import queue, tracing
from jobs.database import connection_is_lost
from jobs.errors import LeaseLostError
from jobs.failures import bury_exhausted, settle_failure
from jobs.gauges.tally import tally
from jobs.messages import Message
from jobs.retry import CRASHES
from jobs.subscriptions import Apply, Route

log = structlog.get_logger(__name__)
Ack = Callable[[queue.Claim, str, Sequence[Message]], queue.Acked]


class Application:
    """The handling of one claim. Use `run` once."""

    def __init__(
        self,
        route: Route,
        handler: Apply,
        claim: queue.Claim,
        stopping: Callable[[], bool],
        on_attempt: Callable[[], None] = lambda: None,
    ) -> None:
        self.route = route
        self.handler = handler
        self.claim = claim
        self.stopping = stopping
        self.on_attempt = on_attempt
        self.applied = 0
        self._blocked: set[str] = set()  # keys with a message that went back: their later ones must wait
        self.attempt: Sequence[Message] = ()  # what the transaction under way works on
        self._leased_at = time.monotonic()

    def give_back(self) -> None:
        """After a lost connection, on a new one: what had not been begun goes back uncharged.

        What was being worked on may be why it was lost (a handler that the server ended): it stays charged, and comes
        back alone.
        """
        attempted = {message.id for message in self.attempt}
        rest = [message for message in self.claim.messages if message.id not in attempted]
        queue.put_back(self.claim, [queue.PutBack(message, charged=False) for message in rest])
        if self.attempt:
            queue.suspect(self.claim, self.attempt)

    def run(self) -> int:
        """Settle every delivery of the claim; returns how many were applied. A lost connection is the caller's."""
        try:
            self._apply(self._set_aside_unknown(bury_exhausted(self.claim, self.route.name)))
        except LeaseLostError as lost:
            log.warning("lease.lost", subscription=self.route.name, token=self.claim.token, detail=str(lost))
            queue.give_back_claim(self.claim)
        return self.applied

    def _apply(self, messages: Sequence[Message]) -> None:
        messages = self._give_back_blocked(messages)
        if not messages:
            return
        if self.stopping() and self._is_part_of_claim(messages):
            queue.put_back(self.claim, [queue.PutBack(message, charged=False) for message in messages])
            return
        self._keep_lease(messages)
        try:
            self._in_one_transaction(messages)
        except LeaseLostError:
            raise
        except (Exception, *CRASHES) as error:
            if connection_is_lost(error):
                raise
            self.attempt = ()
            if len(messages) == 1:
                if settle_failure(self.claim, self.route.name, messages[0], error) and self.route.ordered:
                    self._blocked.add(messages[0].key)
                return
            log.info("batch.halved", subscription=self.route.name, size=len(messages), error=type(error).__name__)
            middle = len(messages) // 2
            self._apply(messages[:middle])
            self._apply(messages[middle:])
        else:
            self.applied += len(messages)
            tally.applied(self.claim.partition, messages)

    def _in_one_transaction(self, messages: Sequence[Message]) -> None:
        self.on_attempt()
        self.attempt = messages
        with (
            tracing.process(self.route.name, messages),
            structlog.contextvars.bound_contextvars(subscription=self.route.name, event_id=messages[0].event_id),
        ):
            try:
                suppressed = self._commit(messages, queue.ack)
            except queue.AlreadyAppliedError:
                suppressed = self._commit(messages, queue.ack_told)
            self.attempt = ()
            log.debug("batch.applied", size=len(messages), suppressed=suppressed)

    def _commit(self, messages: Sequence[Message], ack: Ack) -> int:
        with transaction.atomic():
            queue.note_retried(self.claim, self.route.name, messages)
            acked = ack(self.claim, self.route.name, messages)
            if acked.gone < len(messages):
                raise LeaseLostError(f"{len(messages) - acked.gone} of {len(messages)} are another's now")
            queue.note_suppressed(self.route.name, messages, acked.fresh)
            fresh = messages if acked.fresh is None else first_of_each(messages, acked.fresh)
            if fresh:
                self.handler(fresh)
        return len(messages) - len(fresh)

    def _is_part_of_claim(self, messages: Sequence[Message]) -> bool:
        """Whether these are a part of the claim: told to stop, we finish a whole batch but start no further part."""
        return len(messages) < len(self.claim.messages)

    def _give_back_blocked(self, messages: Sequence[Message]) -> Sequence[Message]:
        waiting = [message for message in messages if message.key in self._blocked]
        if not waiting:
            return messages
        queue.put_back(self.claim, [queue.PutBack(message, charged=False) for message in waiting])
        return [message for message in messages if message.key not in self._blocked]

    def _set_aside_unknown(self, messages: list[Message]) -> list[Message]:
        """Newer code publishes types this worker does not know: put back, uncharged, never discarded."""
        unknown = [message for message in messages if message.type not in self.route.message_types]
        if not unknown:
            return messages
        tally.unknown(self.claim.partition, [message.type for message in unknown])
        log.error("delivery.unknown_type", subscription=self.route.name, types=sorted({m.type for m in unknown}))
        delay = settings.UNKNOWN_HANDLER_DELAY.total_seconds()
        queue.put_back(self.claim, [queue.PutBack(message, delay=delay, charged=False) for message in unknown])
        if not self.route.ordered:
            return [message for message in messages if message.type in self.route.message_types]
        first_unknown = {message.key: message.id for message in reversed(unknown)}
        later = [m for m in messages if m.id > first_unknown.get(m.key, m.id) and m.type in self.route.message_types]
        queue.put_back(self.claim, [queue.PutBack(message, charged=False) for message in later])
        return [message for message in messages if message.id < first_unknown.get(message.key, message.id + 1)]

    def _keep_lease(self, messages: Sequence[Message]) -> None:
        """A long fallback, message by message, must not outlive its lease and be charged as a crash."""
        if time.monotonic() - self._leased_at > settings.VISIBILITY_TIMEOUT.total_seconds() / 3:
            held = [(self.claim, message) for message in self.claim.messages if message.id >= messages[0].id]
            queue.renew(held)
            self._leased_at = time.monotonic()


def first_of_each(messages: Sequence[Message], fresh: set[str]) -> list[Message]:
    """The messages that are new to the ledger, each event once even if the batch held it twice."""
    left = set(fresh)
    chosen = []
    for message in messages:
        if message.event_id in left:
            left.discard(message.event_id)
            chosen.append(message)
    return chosen
