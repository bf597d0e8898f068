"""What a file no longer has: found once all its rows are taken, then named, and marked unavailable if that is wanted.

Guarantee: only a file that can be believed to be whole says by its silence that something is gone; each listing is left
once, in the transaction that counts it. Called by the refresh.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from pricing import listings
from pricing.catalogues import lease, remarks, stage
from pricing.catalogues.rows import Rejected
from pricing.models import CatalogueFile, CatalogueRemark, CatalogueSettings

Kind = CatalogueRemark.Kind
GONE = "no longer in the catalogue"


def find(file: CatalogueFile) -> None:
    """Count the listings of earlier files that this one does not have, if it can be believed to be whole."""
    with transaction.atomic():
        lease.hold(file)
        if file.nameless:  # none of them was left, so all are found again after a crash
            file.absent_done = 0
            CatalogueRemark.objects.filter(file=file, kind=Kind.ABSENT).delete()
        found = 0
        if not (file.shrunken or file.broken or file.late):
            found = stage.add_absent(file.stage, file.merchant_id, after=file.absent_done)
        file.absent = file.absent_done + found
        file.save(update_fields=["absent", "absent_done"])


def leave_some(file: CatalogueFile, now: datetime) -> None:
    """The next of the absent. A row without a name that could be read may be any of them: then they are only named."""
    assert file.settings is not None
    policy = file.settings["absent"]
    source_ids = stage.absent(file.stage, after=file.absent_done, limit=settings.CATALOGUE_CHUNK)
    at = file.as_of + timedelta(microseconds=file.rows + 1)  # after all rows: see file_order
    with transaction.atomic():
        lease.hold(file)
        if not file.nameless:
            withdrawn = listings.leave_file(
                merchant=file.merchant,
                source_ids=source_ids,
                gone=GONE if policy == CatalogueSettings.Absent.WITHDRAW else None,
                at=at,
                attributes={"catalogue_file": str(file.pk)},
                now=now,
            )
            file.withdrawn += len(withdrawn)
        if policy != CatalogueSettings.Absent.KEEP:
            gone = [Rejected(0, "", "", source_id) for source_id in source_ids]
            remarks.keep(file, Kind.ABSENT, gone, already=file.absent_done)
        file.absent_done += len(source_ids)
        file.save(update_fields=["absent_done", "withdrawn"])
