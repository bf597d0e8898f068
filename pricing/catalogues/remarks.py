"""What is told of single rows of a file, bounded in number; the counts know of all. Called by the refresh."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from pricing.catalogues.rows import Rejected
from pricing.models import CatalogueFile, CatalogueRemark


def keep(file: CatalogueFile, kind: str, remarks: Sequence[Rejected], *, already: int) -> None:
    """Keep these, up to CATALOGUE_REMARKS of a kind, of which there are so many already."""
    room = max(settings.CATALOGUE_REMARKS - already, 0)
    CatalogueRemark.objects.bulk_create(
        CatalogueRemark(
            file=file,
            kind=kind,
            line=each.line or None,
            field=each.field[:60],
            reason=each.reason[:500],
            source_id=each.source_id[:200],
        )
        for each in remarks[:room]
    )
