"""What the cellar's pages say. Pure but for the settings; sentences stand here once, for pages and messages alike."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from winecellar.cellars.holdings import Ready
from winecellar.cellars.rules import Change, Source

SOURCES = {
    Source.OWN: "your own value",
    Source.OFFER: "best offer",
    Source.LAST_OFFER: "last offer",
    Source.PAID: "price paid",
    Source.NONE: "no value known",
}
READY = {
    Ready.UNKNOWN: "no drink window",
    Ready.EARLY: "too early",
    Ready.NOW: "ready",
    Ready.LAST_YEAR: "last year of its window",
    Ready.PAST: "past its window",
}
CAUSES = {
    "price": "Prices",
    "rate": "The exchange rate of the dollar",
    "came": "Bottles that came",
    "left": "Bottles that left",
    "revalued": "Own values, prices paid, and another source of a value",
}


def source(which: Source | None, seen_on: date | None, night: date) -> str:
    """“last offer, 12 days old”."""
    if which is None:
        return "new: valued in the coming night"
    if seen_on is None:
        return SOURCES[which]
    days = (night - seen_on).days
    return f"{SOURCES[which]}, {days} day{'' if days == 1 else 's'} old"


def causes(change: Change) -> list[tuple[str, str, Decimal]]:
    """The causes that moved the value, the largest first: their name, words and amount."""
    found = [(cause, words, change.of(cause)) for cause, words in CAUSES.items()]
    return sorted((row for row in found if row[2]), key=lambda row: -abs(row[2]))


def bottles(count: int) -> str:
    return f"{count:,} bottle{'' if count == 1 else 's'}"
