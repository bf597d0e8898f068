"""What came of a catalogue file, for the merchant and for us: as JSON and in words. Reads only.

Called by the feed's status address, the admin and `manage.py import_catalogue`.
"""

from __future__ import annotations

from typing import Any

from pricing.models import CatalogueFile, CatalogueRemark

COUNTS = ("changed", "unchanged", "stale", "held", "unmatched", "kept", "rejected")
MEANING = {
    "changed": "have another price than before, which is published",
    "unchanged": "ask what they asked before",
    "stale": "are older than a price that we know, and went into the history",
    "held": "have a price that a person looks at first, or one in a currency without a rate",
    "unmatched": "wait until a person says which wine they are",
    "kept": "have no price or are sold out, so that the offer ends; or are no wine of ours",
    "rejected": "could not be understood",
}


def as_json(file: CatalogueFile) -> dict[str, Any]:
    """`read` = `rejected_unread` and the sum of the counts, once the file is done."""
    remarks = list(CatalogueRemark.objects.filter(file=file))
    named = [each for each in remarks if each.kind != CatalogueRemark.Kind.ABSENT]
    return {
        "id": file.pk,
        "merchant_id": file.merchant_id,
        "name": file.name,
        "sha256": file.sha256,
        "bytes": file.bytes,
        "as_of": file.as_of.isoformat(),
        "received_at": file.received_at.isoformat(),
        "finished_at": file.finished_at.isoformat() if file.finished_at else None,
        "status": file.status,
        "error": file.error or None,
        "progress": progress(file),
        "read": file.seen,
        **{name: getattr(file, name) for name in COUNTS if name != "rejected"},
        "rejected": file.unread + file.rejected,
        "rejections": [
            {"line": each.line, "field": each.field, "reason": each.reason, "listing": each.source_id or None}
            for each in sorted(named, key=lambda each: each.line or 0)
        ],
        "rejections_not_shown": max(file.unread + file.rejected - len(named), 0),
        "absent": file.absent,
        "absent_listings": [each.source_id for each in remarks if each.kind == CatalogueRemark.Kind.ABSENT],
        "withdrawn": file.withdrawn,
        "notes": notes(file),
    }


def progress(file: CatalogueFile) -> float | None:
    """From 0 to 1, once it is known how much there is to do."""
    if file.status == CatalogueFile.Status.DONE:
        return 1.0
    if file.status != CatalogueFile.Status.APPLYING or not file.rows:
        return None
    return round(file.cursor / file.rows, 3)


def notes(file: CatalogueFile) -> list[str]:
    """What is to be known beside the counts, in sentences."""
    told = []
    policy = (file.settings or {}).get("absent")
    if file.shrunken:
        told.append(
            "It has far fewer rows than the file before it. Its prices were taken; nothing was marked unavailable."
        )
    if file.late:
        told.append("A newer file had been taken before it. Its prices are history; nothing was marked unavailable.")
    if file.broken:
        told.append("It breaks off. The rows before that were taken; nothing was marked unavailable.")
    if file.bare:
        currency = (file.settings or {}).get("file", {}).get("currency")
        told.append(f"Prices without a currency: {file.bare:,}" + (f", taken as {currency}." if currency else "."))
    if file.absent and file.nameless:
        told.append(
            f"{_listings(file.absent)} of earlier files are not in it. {file.nameless} of its rows have no id that can"
            " be read and may be among them, so nothing was marked unavailable."
        )
    elif file.absent and policy == "withdraw":
        told.append(f"{_listings(file.absent)} of earlier files are not in it; {file.withdrawn} offers were ended.")
    elif file.absent:
        told.append(f"{_listings(file.absent)} of earlier files are not in it. Their prices stay as they were.")
    return told


def in_words(file: CatalogueFile) -> list[str]:
    """The report as lines for a terminal."""
    lines = [f"File {file.pk} of {file.merchant_id}: {file.get_status_display().lower()}."]
    if file.error:
        lines.append(file.error)
    lines.append(f"{file.seen:>9,} rows read, of which")
    counts = {name: getattr(file, name) for name in COUNTS}
    counts["rejected"] += file.unread
    lines += [f"{count:>9,} {MEANING[name]}" for name, count in counts.items() if count]
    return lines + notes(file)


def _listings(count: int) -> str:
    return "1 listing" if count == 1 else f"{count:,} listings"
