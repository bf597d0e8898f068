"""The prices of a cellar's file: how they are written is decided for the whole file, as catalogues do. Pure.

Guarantee: a price that can be read in two ways is never guessed. Used by reader.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from pricing.catalogues.errors import UnclearNumbersError
from pricing.catalogues.numbers import NumberStyle, decimals, detect_numbers, take_apart
from winecellar.cellars.files.lots import EMPTY_WORDS, Prices
from winecellar.cellars.files.table import UnreadableFileError

MOST_DIGITS = 15


def price_reader(cells: Iterable[str], decimal_sign: str) -> Prices:
    """A function that reads one cell: its amount, with all its decimals, or None where there is none.

    It raises ValueError, in words. `decimal_sign` is what the person says, or "". Raises UnreadableFileError.
    """
    try:
        style = NumberStyle.of_setting(decimal_sign) if decimal_sign else detect_numbers(cells)
    except UnclearNumbersError as error:
        shown = ", ".join(error.cells[:3])
        raise UnreadableFileError(f"{error.reason} (It has {shown}.)") from error

    # Most prices are digits, and perhaps the decimal sign and some more: those need not be taken apart.
    easy = re.compile(
        rf"[0-9]{{1,{MOST_DIGITS}}}(?:{re.escape(style.decimal)}[0-9]{{1,2}})?" if style.decimal else "[0-9]+"
    )

    def read(cell: str) -> Decimal | None:
        if easy.fullmatch(cell) and len(cell) <= MOST_DIGITS:
            return Decimal(cell.replace(",", "."))
        if cell.lower() in EMPTY_WORDS:
            return None
        found = take_apart(cell)
        places = decimals(found.number, style) if found else None
        if found is None or places is None:
            raise ValueError(f"{cell[:40]!r} is no price, or not written as the others of the file are.")
        digits = re.sub(r"[^0-9]", "", found.number)
        if "-" in found.before or len(digits) > MOST_DIGITS:
            raise ValueError(f"{cell[:40]!r} is no price.")
        return Decimal(int(digits)).scaleb(-places)

    return read
