"""Bringing a file of bottles: looked at first, then written as a whole, and undone as a whole.

Guarantee: nothing is written before the person has seen the totals; the same file brought again adds nothing; two
confirmations at once write once; an undo takes what that import brought and nobody has changed since.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from jobs.garbage import uncollected
from pricing.matching import By, Match
from winecellar.cellars.files import ours
from winecellar.cellars.files.lots import AbsurdFileError, Facts, Lot, Reading, check_room, new_lots
from winecellar.cellars.files.reader import read_file
from winecellar.cellars.files.table import UnreadableFileError
from winecellar.cellars.linking import Said, find_wines, named_wines, said
from winecellar.cellars.models import Bottle, Cellar, Import

SHOWN_REJECTED = 200  # rows named in the report; the rest are counted


class ImportRefusedError(Exception):
    """The file cannot be imported as it is; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a file would do to a cellar now."""

    reading: Reading
    fresh: Sequence[Lot]
    there: int
    links: Mapping[Said, Match]


def preview(*, cellar: Cellar, file_name: str, content: bytes, decimal_sign: str = "", now: datetime) -> Import:
    """Look at a file and keep it until the person decides. Raises ImportRefusedError."""
    with uncollected():
        plan = _plan(cellar, content, decimal_sign)
    links = [[*bottle, match.wine_id, match.by.value] for bottle, match in plan.links.items()]
    forget_previews(cellar=cellar, before=now - settings.CELLAR_PREVIEW_RETENTION)
    return Import.objects.create(
        cellar=cellar,
        file_name=file_name[:200],
        content=content,
        decimal_sign=decimal_sign,
        links=links,
        report=_report(plan),
        created_at=now,
    )


def apply(*, cellar: Cellar, import_id: int, now: datetime) -> Import:
    """Write what the file brings that is not there yet. An import that was written, or undone, is left as it is.

    Raises Import.DoesNotExist, for others' too, and ImportRefusedError.
    """
    with uncollected(), transaction.atomic():
        Cellar.objects.select_for_update(no_key=True).get(pk=cellar.pk)  # two files at once: the later sees the former
        one = Import.objects.select_for_update().get(pk=import_id, cellar=cellar)
        if one.state != Import.State.PREVIEW:
            return one
        assert one.content is not None, "a preview has its file"
        links = {Said(*bottle): Match(wine_id, By(by)) for *bottle, wine_id, by in one.links}
        plan = _plan(cellar, bytes(one.content), one.decimal_sign, links)
        _copy(one, plan, now)
        one.report, one.content, one.links = _report(plan), None, []
        one.state, one.applied_at = Import.State.APPLIED, now
        one.save(update_fields=["state", "content", "links", "applied_at", "report"])
    return one


def undo(*, cellar: Cellar, import_id: int, now: datetime) -> int | None:
    """Take out what an import brought and nobody has changed since: how many rows stay; None if it is not applied."""
    with transaction.atomic():
        one = Import.objects.select_for_update().get(pk=import_id, cellar=cellar)
        if one.state != Import.State.APPLIED:
            return None
        Bottle.objects.filter(imported_by=one, changed_at__isnull=True).delete()
        one.state, one.undone_at = Import.State.UNDONE, now
        one.save(update_fields=["state", "undone_at"])
        return Bottle.objects.filter(imported_by=one).count()


def discard(*, cellar: Cellar, import_id: int) -> None:
    """Give up a preview, with its file."""
    Import.objects.filter(pk=import_id, cellar=cellar, state=Import.State.PREVIEW).delete()


def forget_previews(*, cellar: Cellar, before: datetime) -> None:
    """Files that nobody confirmed."""
    Import.objects.filter(cellar=cellar, state=Import.State.PREVIEW, created_at__lt=before).delete()


# --- How it is done --------------------------------------------------------------------------------------------


def _plan(cellar: Cellar, content: bytes, decimal_sign: str, links: Mapping[Said, Match] | None = None) -> _Plan:
    """`links` are those found before, if any. Raises ImportRefusedError."""
    most = settings.CELLAR_MAX_BOTTLES
    try:
        reading = read_file(
            content,
            decimal_sign=decimal_sign,
            most=most,
            most_per_row=settings.CELLAR_MAX_PER_ROW,
            mean=settings.CELLAR_MAX_MEAN_PER_ROW,
        )
        table = reading.key_prefix
        known, held, elsewhere = set[str](), 0, Counter[tuple[str, int]]()
        rows = Bottle.objects.filter(cellar=cellar).values_list("keys", "quantity", "source_wine", "size_ml")
        for keys, quantity, source_wine, size_ml in rows.iterator():
            known.update(keys)
            held += quantity
            if source_wine:
                elsewhere[source_wine, size_ml] += sum(not key.startswith(table) for key in keys)
        fresh, there = new_lots(reading, known=known, by_other_tables=elsewhere)
        check_room(held, fresh, most=most)
    except (UnreadableFileError, AbsurdFileError) as error:
        raise ImportRefusedError(str(error)) from error
    if links is None:
        find = named_wines if reading.table == ours.TABLE else find_wines
        links = find({said(lot.facts) for lot in fresh})
    return _Plan(reading, fresh, there, links)


def _report(plan: _Plan) -> dict[str, Any]:
    """The preview's numbers. Bottles, but for `rows` and `rejected`, which are rows, and `paid`, which is money."""
    reading, fresh = plan.reading, plan.fresh
    paid: dict[str, Decimal] = defaultdict(Decimal)
    for lot in fresh:
        if lot.facts.paid:
            paid[lot.facts.paid_currency] += lot.facts.paid * lot.quantity
    return {
        "table": reading.table,
        "rows": reading.rows,
        "bottles": reading.bottles,
        "new": sum(lot.quantity for lot in fresh),
        "there": plan.there,
        "matched": sum(lot.quantity for lot in fresh if said(lot.facts) in plan.links),
        "wines": len({(lot.facts.name, lot.facts.vintage) for lot in fresh}),
        "non_vintage": reading.non_vintage,
        "without_price": sum(lot.quantity for lot in fresh if not lot.facts.paid),
        "pending": reading.pending,
        "consumed": reading.consumed,
        "rejected": len(reading.rejected),
        "rejected_rows": [[row.line, row.reason] for row in reading.rejected[:SHOWN_REJECTED]],
        "paid": {currency: str(amount) for currency, amount in sorted(paid.items())},
    }


# Facts are in the order of the table's columns; the bar code and the wine's id have served their purpose.
STORED = Facts._fields[: Facts._fields.index("gtin")]
INSERTED = ("cellar_id", "imported_by_id", "created_at", "keys", "quantity", "wine_id", "linked_by", *STORED)
# Many times faster than inserting, and all or nothing with the transaction around it.
COPY = f"COPY cellars_bottle ({', '.join(INSERTED)}) FROM STDIN"


def _copy(one: Import, plan: _Plan, now: datetime) -> None:
    with connection.cursor() as cursor, cursor.copy(COPY) as rows:
        for lot in plan.fresh:
            link = plan.links.get(said(lot.facts))
            wine = (link.wine_id, link.by.value) if link else (None, "")
            rows.write_row((one.cellar_id, one.pk, now, lot.keys, lot.quantity, *wine, *lot.facts[: len(STORED)]))
