"""The `refresh_catalogue` command: a file is taken in turns of some seconds, each of which ends with the next command.

Guarantee: a turn keeps what it has done by itself, chunk by chunk, so a turn that is repeated or lost costs nothing.
Its route is in winecellar/routes.py: it works outside the lane's transaction, for a handler inside one may take no
longer than its lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.utils import timezone

from jobs.messages import Message
from jobs.outbox import publish
from pricing.catalogues import files, lease, refresh
from pricing.catalogues.refresh import Turn
from pricing.models import CatalogueFile


def prepare(messages: Sequence[Message]) -> list[int | None]:
    """The files' numbers; None for one that is finished, or that nobody remembers."""
    wanted = [message.number("file_id") for message in messages]
    waiting = CatalogueFile.objects.filter(pk__in=wanted).exclude(status__in=CatalogueFile.FINISHED)
    known = set(waiting.values_list("pk", flat=True))
    return [file_id if file_id in known else None for file_id in wanted]


def check(message: Message) -> None:
    """Raises PermanentError for a command that names nothing."""
    message.number("file_id")


def perform(file_id: int) -> Turn:
    """One turn, on this thread's own connection."""
    try:
        return refresh.run(file_id=file_id, now=timezone.now(), seconds=settings.CATALOGUE_TURN.total_seconds())
    except lease.BusyError:
        return Turn(more=True, busy=True)
    finally:
        connection.close()


def record(pairs: Sequence[tuple[Message, Turn | None]]) -> None:
    """What is not finished goes on; what found somebody else at work waits a little."""
    for message, turn in pairs:
        if turn is not None and turn.more:
            file = CatalogueFile.objects.get(pk=message.body["file_id"])
            publish([files.command(file)], delay=settings.CATALOGUE_BUSY_DELAY if turn.busy else timedelta(0))
