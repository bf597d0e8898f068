"""One delivery that failed: classify, decide, write. Only here does a failure become a retry or a dead letter."""

from __future__ import annotations

import random
import traceback

import structlog
from django.conf import settings

from jobs import queue, tracing
from jobs.database import database_is_away
from jobs.dead_letters.case_files import origin_of
from jobs.dead_letters.fingerprint import fingerprint
from jobs.errors import LeaseLostError
from jobs.gauges.tally import tally
from jobs.loop import process_name
from jobs.messages import Message, NewMessage
from jobs.retry import Bury, Cause, Kind, Retry, classify, decide

log = structlog.get_logger(__name__)


def settle_failure(
    claim: queue.Claim, consumer: str, message: Message, error: BaseException, *, waits: Retry | None = None
) -> bool:
    """Put the delivery back with a delay, or bury it; whether it is still in the queue and so blocks its key.

    `waits` where that is decided already. Raises LeaseLostError if it is another's by now: what becomes of its key is
    then that worker's business.
    """
    kind = classify(error, is_away=database_is_away)
    decision = waits or decide(
        kind,
        receive_count=message.receive_count,
        max_receives=settings.MAX_RECEIVES,
        base=settings.RETRY_BACKOFF_BASE.total_seconds(),
        retry_after=getattr(error, "retry_after", 0.0),
        uniform=random.uniform,
    )
    facts = {
        "subscription": consumer,
        "event_id": message.event_id,
        "receive_count": message.receive_count,
        "error_class": type(error).__name__,
        **tracing.named(message.attributes),
    }
    if kind in {Kind.UNCLASSIFIED, Kind.CRASH}:
        log.error(kind.value, **facts, exc_info=error)
    match decision:
        case Retry(delay=delay, charged=charged):
            log.info("delivery.retry", **facts, kind=kind.value, delay=round(delay, 3), charged=charged)
            failure = {
                "error_class": type(error).__name__,
                "reason": str(error),
                "receive": message.receive_count,
                "worker": process_name(),
            }
            # What is not charged is not kept either: it may happen hundreds of times, and says nothing of the message.
            back = queue.PutBack(message, delay=delay, charged=charged, failure=failure if charged else None)
            if not queue.put_back(claim, [back]):
                raise LeaseLostError("what failed is another's now")
            tally.failed(claim.partition, type(error).__name__, buried=False)
            return True
        case Bury(cause=cause):
            bury(claim, consumer, message, cause, error)
            return False


def bury(claim: queue.Claim, consumer: str, message: Message, cause: Cause, error: BaseException) -> None:
    """Move one delivery to the dead letters, with what is needed to decide about it. Raises LeaseLostError."""
    buried = queue.bury(
        claim,
        consumer,
        message,
        _burial(
            consumer,
            message,
            error,
            cause=cause,
            traceback=_own_traceback(error),
            receives=min(message.receive_count, settings.MAX_RECEIVES),
        ),
    )
    if buried is None:
        raise LeaseLostError("what was to be buried is another's now")
    tally.failed(claim.partition, type(error).__name__, buried=True)
    facts = {"subscription": consumer, "event_id": message.event_id, "cause": cause.value}
    log.warning("delivery.dead_lettered", **facts, **tracing.named(message.attributes))


def bury_unqueued(consumer: str, message: NewMessage, error: BaseException) -> int:
    """Make a dead letter of what could not even become a message, under the name of who tried; the letter's id.

    In the caller's transaction, with whatever else it keeps of it. It was received once, and will never do.
    """
    # What was sent is wrong, not the code that says so: no traceback.
    burial = _burial(consumer, message, error, cause=Cause.PERMANENT, traceback="", receives=1)
    letter = queue.bury_unqueued(consumer, message, burial)
    log.warning("message.dead_lettered", consumer=consumer, event_id=message.event_id, key=message.key)
    return letter


def _burial(
    consumer: str, message: Message | NewMessage, error: BaseException, *, cause: Cause, traceback: str, receives: int
) -> queue.Burial:
    error_class = type(error).__name__
    reason = str(error) or error_class
    return queue.Burial(
        cause=cause.value,
        error_class=error_class,
        reason=reason,
        traceback=traceback,
        receives=receives,
        worker="" if cause is Cause.WORKER_CRASH else process_name(),  # not us: whoever held it, and did not say so
        origin=origin_of(message.type, message),
        fingerprint=fingerprint(consumer, message.type, error_class, reason),
    )


def _own_traceback(error: BaseException) -> str:
    """The error's traceback without those of the batches that failed because of it and were halved."""
    told: BaseException | None = error
    while told is not None and told.__context__ is not None:
        began = told.__context__.__traceback__
        if began is not None and began.tb_frame.f_globals.get("__name__") == "jobs.apply":
            told.__context__ = None
        told = told.__context__
    return "".join(traceback.format_exception(error))


class WorkerCrashError(Exception):
    """The worker fell silent each time it held this delivery."""


def bury_exhausted(claim: queue.Claim, consumer: str) -> list[Message]:
    """Bury what was received as often as allowed and still came back; return the rest, which may run.

    A failure that could be told is buried when it happens; what arrives here again took its worker with it.
    """
    runnable = []
    for message in claim.messages:
        if message.receive_count > settings.MAX_RECEIVES:
            error = WorkerCrashError(f"the worker died or hung on each of {settings.MAX_RECEIVES} receives")
            bury(claim, consumer, message, Cause.WORKER_CRASH, error)
        else:
            runnable.append(message)
    return runnable
