"""What is kept for how long, and its removal: ledger, dead letters, message log. In batches, each its own commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.conf import settings

from jobs import catalog

log = structlog.get_logger(__name__)
BATCH = 10_000


@dataclass(frozen=True)
class Removed:
    """Ledger rows and dead letters that went, months of the log that went, and dead letters that soon will."""

    ledger: int
    dead_letters: int
    months: list[str]
    expiring: int


def apply(*, now: datetime) -> Removed:
    """Make the log's coming partitions, and remove what is past its time. Safe to run twice, or twice at once."""
    catalog.ensure_message_partitions()
    removed = Removed(
        ledger=_all(lambda: catalog.purge_ledger(now - settings.LEDGER_RETENTION, batch=BATCH)),
        dead_letters=_all(lambda: catalog.purge_dead_letters(now - settings.DEAD_LETTER_RETENTION, batch=BATCH)),
        months=catalog.drop_message_partitions(now - settings.MESSAGE_RETENTION),
        expiring=catalog.dead_letters_expiring(now - settings.DEAD_LETTER_RETENTION + settings.DEAD_LETTER_WARN_EXPIRY),
    )
    if removed.expiring:
        log.warning("dead_letters.expiring", count=removed.expiring)
    log.info("retention.applied", ledger=removed.ledger, dead_letters=removed.dead_letters, months=removed.months)
    return removed


def _all(batch: Callable[[], int]) -> int:
    total = 0
    while count := batch():
        total += count
    return total
