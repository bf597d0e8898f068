"""A scheduled job: sessions that are over, mails about accounts whose links no longer work, attempts long forgotten."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from jobs.housekeeping import in_chunks
from jobs.schedule import store
from jobs.schedule.run import Run
from winecellar.accounts import cache
from winecellar.accounts.models import AccountMail, Session

BATCH = 5_000


def purge(run: Run) -> None:
    now: datetime = store.now()
    gone = in_chunks(run, lambda: _some(Session.objects.filter(expire_date__lt=now)), of="sessions removed")
    gone += in_chunks(
        run, lambda: _some(AccountMail.objects.filter(wanted_until__lt=now)), of="mails removed", before=gone
    )
    in_chunks(run, cache.purge, of="counts removed", before=gone)


def _some(rows: QuerySet[Session] | QuerySet[AccountMail]) -> int:
    deleted, _by_model = rows.model._default_manager.filter(
        pk__in=list(rows.values_list("pk", flat=True)[:BATCH])
    ).delete()
    return deleted
