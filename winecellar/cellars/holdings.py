"""A cellar's bottles as a person looks at them: chosen, sorted, grouped, ready or not. Pure.

Guarantee: bottles without a value are counted in every group, and add nothing to its value. Used by selectors.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from pricing.folding import fold
from winecellar.cellars.rules import ZERO, Source

MOST_WORDS = 8


class Ready(StrEnum):
    """Where a year stands in a bottle's drink window."""

    UNKNOWN = "unknown"
    EARLY = "early"
    NOW = "now"
    LAST_YEAR = "last year"
    PAST = "past"


class Held(NamedTuple):
    """A row of bottles that are there, with what one of them was worth on the last night."""

    id: int
    name: str
    producer: str
    vintage: int | None
    non_vintage: bool
    size_ml: int
    colour: str
    country: str
    region: str
    quantity: int
    location: str
    bin: str
    drink_from: int | None
    drink_until: int | None
    wine_id: str | None
    unit: Decimal | None = None
    source: Source | None = None
    seen_on: date | None = None

    @property
    def value(self) -> Decimal | None:
        return None if self.unit is None else self.unit * self.quantity

    @property
    def vintage_words(self) -> str:
        return str(self.vintage) if self.vintage else "NV" if self.non_vintage else ""

    @property
    def wide_region(self) -> str:
        """“Bordeaux” of “Pauillac, Bordeaux”; the country where there is no region."""
        return self.region.rpartition(",")[2].strip() or self.country

    @property
    def text(self) -> str:
        words = (self.name, self.producer, self.region, self.country, self.vintage_words, self.location, self.bin)
        return fold(" ".join(words))


def readiness(held: Held, year: int) -> Ready:
    """Both ends of a window count as inside it; of a window with one end the other is open."""
    if held.drink_from is None and held.drink_until is None:
        return Ready.UNKNOWN
    if held.drink_from is not None and year < held.drink_from:
        return Ready.EARLY
    if held.drink_until is None or year < held.drink_until:
        return Ready.NOW
    return Ready.LAST_YEAR if year == held.drink_until else Ready.PAST


def drink_now(bottles: Iterable[Held], year: int) -> list[Held]:
    """What should be drunk this year, the most urgent first."""
    ready = [held for held in bottles if readiness(held, year) in {Ready.NOW, Ready.LAST_YEAR, Ready.PAST}]
    return sorted(ready, key=lambda held: (held.drink_until or 9999, held.drink_from or 0, held.name, held.id))


SORTS: dict[str, Callable[[Held], Any]] = {
    "name": lambda held: (fold(held.name), held.vintage or 0),
    "vintage": lambda held: (held.vintage or 9999, fold(held.name)),
    "value": lambda held: (-(held.value or ZERO), fold(held.name)),
    "drink": lambda held: (held.drink_until or held.drink_from or 9999, fold(held.name)),
    "location": lambda held: (fold(held.location), fold(held.bin), fold(held.name)),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which bottles of a cellar to see, and in what order; "" does not restrict."""

    search: str = ""
    region: str = ""
    vintage: str = ""
    size: str = ""
    location: str = ""
    show: str = ""  # ready, unvalued, unlinked
    sort: str = "name"

    def of(self, bottles: Iterable[Held], year: int) -> list[Held]:
        words = fold(self.search).split()[:MOST_WORDS]
        chosen = [held for held in bottles if self._fits(held, year) and all(word in held.text for word in words)]
        return sorted(chosen, key=lambda held: (*SORTS.get(self.sort, SORTS["name"])(held), held.id))

    def _fits(self, held: Held, year: int) -> bool:
        return (
            self.region in {"", held.wide_region}
            and self.vintage in {"", held.vintage_words}
            and self.size in {"", str(held.size_ml)}
            and self.location in {"", held.location}
            and {
                "ready": lambda: readiness(held, year) in {Ready.NOW, Ready.LAST_YEAR, Ready.PAST},
                "unvalued": lambda: held.source is Source.NONE,
                "unlinked": lambda: held.wine_id is None,
            }.get(self.show, lambda: True)()
        )


@dataclass(frozen=True, slots=True)
class Group:
    """What one region, vintage or size has: bottles, their value, and its part of the cellar's in per cent."""

    label: str
    bottles: int
    without_value: int
    value: Decimal
    percent: Decimal


def group(bottles: Sequence[Held], by: Callable[[Held], str], *, most: int) -> list[Group]:
    """The largest groups by value, then by bottles; what is beyond `most` is put together as “others”."""
    rows: dict[str, tuple[int, int, Decimal]] = {}
    for held in bottles:
        label = by(held)
        count, without, value = rows.get(label, (0, 0, ZERO))
        left_out = held.quantity if held.value is None else 0
        rows[label] = (count + held.quantity, without + left_out, value + (held.value or ZERO))
    ordered = sorted(rows.items(), key=lambda row: (-row[1][2], -row[1][0], row[0]))
    if len(ordered) > most:
        tail = [row for _, row in ordered[most - 1 :]]
        others = (sum(row[0] for row in tail), sum(row[1] for row in tail), sum((row[2] for row in tail), ZERO))
        ordered = [*ordered[: most - 1], ("others", others)]
    total = sum((value for _, (_, _, value) in ordered), ZERO)
    return [
        Group(label, count, without, value, value / total * 100 if total else ZERO)
        for label, (count, without, value) in ordered
    ]
