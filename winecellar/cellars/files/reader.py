"""Reads the file that somebody brings: which kind it is, and what it says. Pure.

Guarantee: it raises UnreadableFileError or AbsurdFileError, in words, or accounts for every row. Used by imports.py.
"""

from __future__ import annotations

from types import ModuleType

from winecellar.cellars.files import cellartracker, ours
from winecellar.cellars.files.lots import Reading, check_totals
from winecellar.cellars.files.numbers import price_reader
from winecellar.cellars.files.table import UnreadableFileError, read_table


def read_file(content: bytes, *, decimal_sign: str, most: int, most_per_row: int, mean: int) -> Reading:
    """`decimal_sign` is "." or ",", or "" to find out. `most`, `most_per_row` and `mean` are bounds of bottles."""
    table = read_table(content)
    kind: ModuleType
    if ours.is_ours(table.header):
        kind = ours
    elif "iWine" in table.header:
        kind = cellartracker
    else:
        raise UnreadableFileError(
            "Neither CellarTracker’s columns (iWine, Wine, Vintage …) nor our own are in the first line. Export the"
            " table as it is, with its first line."
        )
    prices = price_reader(table.cells(kind.PRICES), decimal_sign)
    reading: Reading = kind.read(table, prices, most_per_row=most_per_row)
    check_totals(reading, most=most, mean=mean)
    return reading
