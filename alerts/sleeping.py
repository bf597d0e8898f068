"""Two scheduled jobs: snoozes that are over, and deleted alerts that nobody brought back.

Guarantee: whoever's snooze is over hears of what happened meanwhile, within the job's interval; matching itself goes
by the time and needs no job to speak again. A deletion is final only after ALERT_UNDO. Each chunk is under the fence.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from alerts import services
from alerts.models import Alert
from jobs.housekeeping import in_chunks
from jobs.schedule import store
from jobs.schedule.run import Run

DELETED_AT_ONCE = 200  # each with some hundred decisions


def end_snoozes(run: Run) -> None:
    """Have the alerts looked at whose snooze has ended."""
    in_chunks(run, lambda: services.end_snoozes(now=store.now()), of="snoozes ended")


def purge_deleted(run: Run) -> None:
    """Remove what was deleted too long ago to be brought back, with its log and its mails."""
    before = store.now() - settings.ALERT_UNDO
    in_chunks(run, lambda: _purge(before), of="alerts removed")


def _purge(before: datetime) -> int:
    # SKIP LOCKED: an account that is being erased takes its alerts along itself.
    gone = Alert.objects.filter(deleted_at__lt=before).order_by("pk").select_for_update(skip_locked=True)
    ids = list(gone.values_list("pk", flat=True)[:DELETED_AT_ONCE])
    Alert.objects.filter(pk__in=ids).delete()
    return len(ids)
