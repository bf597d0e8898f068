"""How a column's numbers are written: which sign is the decimal one, which stands between thousands. Pure.

Guarantee: the decision is made about the whole column, never a cell, and only when all its cells can be read in one
way alone; otherwise UnclearNumbersError names cells and the setting to make. Used while a file is read, and after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pricing.catalogues.errors import UnclearNumbersError

SPACES = "\u00a0\u2007\u2009\u202f"  # all that are written between thousands, each taken for a plain one
APOSTROPHES = "’‘`´"
THOUSANDS = ",. '"
MOST_SHAPES = 4_096  # remembered, for speed alone
_SIGNS = str.maketrans({**dict.fromkeys(SPACES, " "), **dict.fromkeys(APOSTROPHES, "'"), "−": "-", "–": "-", "—": "-"})
# Each digit but 0 as 9: cells of one shape read alike. 0 is apart, since 0,750 is no number of thousands.
_SHAPE = str.maketrans("12345678", "99999999")
# What stands before, the number, what Swiss and German shops write for “and no cents”, and what stands behind.
_CELL = re.compile(
    r"(?P<before>(?:s?fr|kr)\.\s*|[^0-9.,]*?)"
    r"(?P<number>[.,]?[0-9](?:[0-9., ']*[0-9])?)(?P<even>[.,]--?)?(?P<after>[^0-9]*)",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """The decimal sign, and the signs that may stand between thousands; "" where the column has none."""

    decimal: str
    thousands: str

    @classmethod
    def of_setting(cls, decimal: str) -> NumberStyle:
        """What a merchant's decimal sign means: whatever else is usual may stand between thousands."""
        return cls(decimal, THOUSANDS.replace(decimal, ""))


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell taken apart. `number` ends with the decimal sign if the cell says “and no cents”, as in `12,-`."""

    before: str
    number: str
    after: str


def take_apart(text: str) -> Cell | None:
    """None: there is no number in it, or more than one."""
    found = _CELL.fullmatch(text.translate(_SIGNS).strip())
    if found is None:
        return None
    return Cell(found["before"].strip(), found["number"] + (found["even"] or "")[:1], found["after"].strip())


def decimals(number: str, style: NumberStyle) -> int | None:
    """How many of the number's digits are decimals, or None: it is not written in this style."""
    found = _pattern(style).fullmatch(number)
    return None if found is None else len(found["decimals"] or "")


@lru_cache(maxsize=64)
def _pattern(style: NumberStyle) -> re.Pattern[str]:
    tail = rf"(?:{re.escape(style.decimal)}(?P<decimals>[0-9]*))?" if style.decimal else "(?P<decimals>(?!))?"
    grouped = rf"|[1-9][0-9]{{0,2}}(?P<sign>[{re.escape(style.thousands)}])[0-9]{{3}}(?:(?P=sign)[0-9]{{3}})*"
    return re.compile(f"(?:[0-9]*{grouped if style.thousands else ''}){tail}", re.ASCII)


# All styles there are. Which of them a column is in is found by what they cannot read.
_STYLES = [NumberStyle(sign, between) for sign in ".," for between in ("", *THOUSANDS) if between != sign]


class NumberColumn:
    """What the cells seen so far say of their style. Its size does not grow with the column."""

    def __init__(self) -> None:
        # Readings of a cell: its decimals in each of _STYLES. There are few; each with the first cell that has them.
        self._readings: dict[tuple[int | None, ...], str] = {}
        self._shapes: set[str] = set()

    def feed(self, texts: Iterable[str]) -> None:
        shapes = self._shapes
        for text in texts:
            shape = text.translate(_SHAPE)
            if shape not in shapes:
                self._learn(shape, text)

    def _learn(self, shape: str, text: str) -> None:
        if len(self._shapes) >= MOST_SHAPES:
            self._shapes.clear()
        self._shapes.add(shape)
        if cell := take_apart(text):
            reading = tuple(decimals(cell.number, style) for style in _STYLES)
            if any(places is not None for places in reading):  # what no style can read says nothing of the others
                self._readings.setdefault(reading, text)

    def style(self) -> NumberStyle:
        """The column's style. Raises UnclearNumbersError."""
        possible = [
            index for index in range(len(_STYLES)) if all(reading[index] is not None for reading in self._readings)
        ]
        if not possible:
            raise UnclearNumbersError(
                "The prices are written in more than one way. Tell us the decimal sign; rows in another way are"
                " then rejected.",
                cells=self._quarrel(),
            )
        unclear = [text for reading, text in self._readings.items() if len({reading[index] for index in possible}) > 1]
        if unclear:
            raise UnclearNumbersError(
                f"Prices such as {unclear[0]} can be read in two ways, and no other price of the file says which."
                " Tell us the decimal sign.",
                cells=unclear,
            )
        return NumberStyle(
            _agreed(_STYLES[index].decimal for index in possible),
            _agreed(_STYLES[index].thousands for index in possible),
        )

    def _quarrel(self) -> list[str]:
        """Cells that no one style can read together: the fewest that we find, beginning with the first."""
        left, cells = set(range(len(_STYLES))), []
        for reading, text in self._readings.items():
            still = {index for index in left if reading[index] is not None}
            if still != left:
                cells.append(text)
                left = still
        return cells


def _agreed(signs: Iterable[str]) -> str:
    """A sign that no cell had is one that no cell may have: then the styles that are left differ in it."""
    different = set(signs)
    return different.pop() if len(different) == 1 else ""


def detect_numbers(texts: Iterable[str]) -> NumberStyle:
    """The style of a whole column. Raises UnclearNumbersError."""
    column = NumberColumn()
    column.feed(texts)
    return column.style()
