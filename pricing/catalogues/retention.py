"""How long catalogue files are kept: their bytes for a while, their reports for longer. Called by the schedule.

Guarantee: what is still to be taken keeps its bytes, however old; each chunk is small and under the run's fence.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db.models import Q

from jobs.housekeeping import in_chunks
from jobs.schedule import store
from jobs.schedule.run import Run
from pricing.catalogues import stage
from pricing.models import CatalogueFile, CataloguePiece

PIECES_AT_ONCE = 100
FILES_AT_ONCE = 20  # each with its remarks


def purge(run: Run) -> None:
    """A scheduled job: remove the bytes of old files, old files' reports, and what was never received whole."""
    now = store.now()
    pieces = in_chunks(run, lambda: _purge_pieces(now), of="pieces removed")
    reports = in_chunks(run, lambda: _purge_files(now), of="files removed", before=pieces)
    with run.fenced():
        stage.drop_strays()
    run.progress(pieces + reports, **{"pieces removed": pieces, "files removed": reports})


def _purge_pieces(now: datetime) -> int:
    old = CataloguePiece.objects.filter(
        file__status__in=CatalogueFile.FINISHED, file__received_at__lt=now - settings.CATALOGUE_RETENTION
    )
    some = list(old.order_by("file", "number").values_list("pk", flat=True)[:PIECES_AT_ONCE])
    CataloguePiece.objects.filter(pk__in=some).delete()
    return len(some)


def _purge_files(now: datetime) -> int:
    forgotten = Q(status__in=CatalogueFile.FINISHED, received_at__lt=now - settings.CATALOGUE_REPORT_RETENTION)
    abandoned = Q(status=CatalogueFile.Status.RECEIVING, received_at__lt=now - settings.CATALOGUE_ABANDONED_AFTER)
    old = CatalogueFile.objects.filter(forgotten | abandoned).order_by("received_at")
    some = list(old.values_list("pk", flat=True)[:FILES_AT_ONCE])
    CatalogueFile.objects.filter(pk__in=some).delete()
    return len(some)
