"""Who works on a catalogue file: a lease with a token in the file's own row.

Guarantee: of one merchant's files one is taken at a time, those that workers take in the order in which they came;
whoever lost the lease is told so before anything is written, inside the transaction that would have written it. An
interrupted file gives way to a newer one once its lease is over. Called by the refresh.
"""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from jobs.errors import LeaseLostError
from pricing.catalogues import stage
from pricing.models import CatalogueFile, CatalogueSettings

log = structlog.get_logger(__name__)
Status = CatalogueFile.Status


class BusyError(Exception):
    """Another file of the merchant, or this one, is being taken by somebody; the message says which."""


def claim(*, file_id: int, now: datetime) -> CatalogueFile | None:
    """Lease a file to us; None when it is finished. Raises BusyError."""
    with transaction.atomic():
        merchant_id = CatalogueFile.objects.values_list("merchant_id", flat=True).get(pk=file_id)
        # Whoever wants a file of this merchant waits here, so that no two can find it free.
        CatalogueSettings.objects.select_for_update().get(merchant=merchant_id)
        file = CatalogueFile.objects.select_for_update(of=("self",)).get(pk=file_id)
        if file.status in CatalogueFile.FINISHED:
            return None
        if first := _before(file, now):
            raise BusyError(f"File {first} of {merchant_id} came before this one, and waits as well.")
        for other in CatalogueFile.objects.filter(merchant=merchant_id, status__in=CatalogueFile.RUNNING):
            alive = CatalogueFile.objects.filter(pk=other.pk, leased_until__gt=Now()).exists()
            if alive and (other.pk != file.pk or other.lease_token):
                raise BusyError(f"File {other.pk} of {merchant_id} is being taken just now.")
            if other.pk != file.pk:
                _give_up(other, f"It was interrupted, and file {file.pk} was taken in its place.", now)
        _begin(file)
    return file


def _before(file: CatalogueFile, now: datetime) -> int | None:
    """The first of the merchant's files that came before this one and are still to be taken, both by a worker.

    One is waited for so long as its command may still be on its way, and no longer: it may have become a dead letter.
    """
    if not file.queued or file.status != Status.UPLOADED or now - file.received_at > settings.CATALOGUE_ORDER_PATIENCE:
        return None
    waiting = CatalogueFile.objects.filter(merchant=file.merchant_id, status=Status.UPLOADED, queued=True)
    return waiting.filter(pk__lt=file.pk).order_by("pk").values_list("pk", flat=True).first()


def refuse(file: CatalogueFile, words: str, *, now: datetime) -> None:
    """End with a file of which nothing more is taken, and say why."""
    with transaction.atomic():
        hold(file)
        _give_up(file, words, now)


def _begin(file: CatalogueFile) -> None:
    file.lease_token = uuid4().hex
    if file.status != Status.APPLYING or stage.count(file.stage) != file.rows:
        # Nothing was staged, or only a part, or the server has crashed since: read it (anew), under a new name.
        stage.drop(file.stage)
        file.stage = stage.name(file)
        file.status = Status.READING
    file.leased_until = Now() + settings.CATALOGUE_LEASE
    file.save(update_fields=["lease_token", "leased_until", "stage", "status"])


def hold(file: CatalogueFile) -> None:
    """Lock the file's row and renew its lease, inside the caller's transaction. Raises LeaseLostError."""
    held = CatalogueFile.objects.filter(pk=file.pk, lease_token=file.lease_token)
    if not held.update(leased_until=Now() + settings.CATALOGUE_LEASE):
        raise LeaseLostError(f"file {file.pk} is another's now")


def release(file: CatalogueFile) -> None:
    """Let anybody go on with it at once; until the lease would have run out, no other file takes its place."""
    CatalogueFile.objects.filter(pk=file.pk, lease_token=file.lease_token).update(lease_token="")


def _give_up(file: CatalogueFile, words: str, now: datetime) -> None:
    file.status, file.error, file.finished_at = Status.REFUSED, words, now
    file.save(update_fields=["status", "error", "finished_at"])
    stage.drop(file.stage)
    log.info("catalogue.refused", file=file.pk, reason=words)
