"""Publishing: the message and its deliveries are written in the caller's transaction, with the change they announce.

Guarantee: they exist together or not at all. For order within a key the caller holds that entity's row lock before
it publishes (see ARCHITECTURE.md, gotcha 1). Subscribers are found in jobs_subscription, never named by producers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import structlog
from django.db import transaction

from jobs import queue, tracing, wakeup
from jobs.database import in_transaction, run
from jobs.errors import NotInTransactionError
from jobs.messages import OF_ITSELF, NewMessage

log = structlog.get_logger(__name__)


def publish(messages: Sequence[NewMessage], *, delay: timedelta = timedelta(0)) -> list[str]:
    """Publish messages in the order given and return their event ids.

    With a delay they become available that much later; in an ordered subscription their keys' later messages wait
    behind them. Raises NotInTransactionError outside `transaction.atomic()`: a fact announced apart from the change
    that makes it true could survive without it.
    """
    if not in_transaction():
        raise NotInTransactionError("publish() belongs in the transaction that writes what it announces")
    if not messages:
        return []
    with tracing.send(messages) as trace:
        reached = queue.insert_messages(messages, delay=delay, trace=trace)
    types = sorted({message.type for message in messages})  # and not the messages, which may be a hundred thousand
    transaction.on_commit(lambda: _tell(reached(), types))
    return [message.event_id for message in messages]


def publish_along(sql: str, parameters: Mapping[str, Any], messages: Sequence[NewMessage]) -> None:
    """Run one statement that writes a change and what announces it: queue.PUBLISHING is among its parts, and its end is
    queue.REACHED. It is a transaction by itself, and may be one's only one.
    """
    with tracing.send(messages) as trace:
        cursor = run(sql, {**parameters, **queue.publishing(messages, trace=trace)})
        reached = queue.reached_by(cursor)()
    if types := sorted({message.type for message in messages}):
        transaction.on_commit(lambda: _tell(reached, types))


def follow_up(cause: Mapping[str, str], *, caused_by: str) -> dict[str, str]:
    """The attributes of a message that follows from one with the attributes `cause`: `caused_by` is the first event,
    by which its journey finds all that came of it."""
    passed = {name: value for name, value in tracing.handed_on(cause).items() if name not in OF_ITSELF}
    return {**passed, "caused_by": caused_by}


def _tell(reached: Sequence[queue.Partition], types: Sequence[str]) -> None:
    if reached:
        wakeup.announce(reached)
    else:
        log.info("outbox.no_subscriber", types=types)
