"""Reads the file that somebody brings: which kind it is, and what it says. Pure.

Guarantee: it raises UnreadableFileError or AbsurdFileError, in words, or accounts for every row. Used by imports.py.
"""

from __future__ import annotations

from itertools import chain

from winecellar.cellars.files import cellartracker, ours
from winecellar.cellars.files.lots import Reading, check_totals
from winecellar.cellars.files.numbers import price_reader
from winecellar.cellars.files.table import UnreadableFileError, read_table


def read_file(content: bytes, *, decimal_sign: str, most: int, most_per_row: int, mean: int) -> Reading:
    """`decimal_sign` is "." or ",", or "" to find out. `most`, `most_per_row` and `mean` are bounds of bottles."""
    table = read_table(content)
    if ours.is_ours(table.header):
        kind, columns = ours.read, ours.PRICES
    elif "iWine" in table.header:
        kind, columns = cellartracker.read, cellartracker.PRICES
    else:
        raise UnreadableFileError(
            "Neither CellarTracker’s columns (iWine, Wine, Vintage …) nor our own are in the first line. Export the"
            " table as it is, with its first line."
        )
    prices = price_reader(chain.from_iterable(table.column(name) for name in columns), decimal_sign)
    reading = kind(table, prices, most_per_row=most_per_row)
    check_totals(reading, most=most, mean=mean)
    return reading
