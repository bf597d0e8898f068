"""Our own file of a cellar: written as CSV, and read again to the same cellar. Pure.

Guarantee: reading what was written gives the same bottles; no cell is a formula to a spreadsheet. Used by exports and
by reader.py.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from winecellar.cellars.files import lots
from winecellar.cellars.files.lots import Facts, Lot, Prices, Reading, RowError
from winecellar.cellars.files.table import Table, UnreadableFileError

# A spreadsheet takes these at a cell's beginning for a formula; an apostrophe before it says that it is text.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
TABLE = "Winecellar"
KEYS = "Winecellar keys"
# The columns after the keys, in order: their names in the file, and the fact they hold.
COLUMNS = {
    "Quantity": "",
    "Name": "name",
    "Producer": "producer",
    "Vintage": "vintage",
    "Size ml": "size_ml",
    "Colour": "colour",
    "Country": "country",
    "Region": "region",
    "Paid": "paid",
    "Paid currency": "paid_currency",
    "Purchased on": "purchased_on",
    "Store": "store",
    "Location": "location",
    "Bin": "bin",
    "Drink from": "drink_from",
    "Drink until": "drink_until",
    "Note": "note",
    "Own value": "own_value",
    "Own value currency": "own_currency",
    "Wine id": "wine_id",
    "Source wine": "source_wine",
}
PRICES = ("Paid", "Own value")
COLOURS = frozenset({"", "red", "white", "rose", "sparkling", "sweet", "fortified"})


def is_ours(header: list[str]) -> bool:
    return KEYS in header


def safe(cell: str) -> str:
    """The cell, with an apostrophe before what a spreadsheet would compute."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def plain(cell: str) -> str:
    """What `safe` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def write(held: Iterable[Lot]) -> Iterator[str]:
    """The file, line by line, with a mark that tells spreadsheets that it is UTF-8."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    buffer.write("\ufeff")
    writer.writerow([KEYS, *COLUMNS])
    for lot in held:
        cells = [" ".join(map(_packed, lot.keys)), str(lot.quantity)]
        cells += [_written(lot.facts, name) for name in COLUMNS.values() if name]
        writer.writerow(map(safe, cells))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _packed(key: str) -> str:
    """A key may hold spaces, which stand between keys here."""
    return key.replace("%", "%25").replace(" ", "%20")


def _unpacked(key: str) -> str:
    return key.replace("%20", " ").replace("%25", "%")


def _written(facts: Facts, name: str) -> str:
    value: Any = getattr(facts, name)
    if name == "vintage" and facts.non_vintage:
        return "NV"
    return "" if value is None else value.isoformat() if isinstance(value, date) else str(value)


def read(table: Table, prices: Prices, *, most_per_row: int) -> Reading:
    """Read our own file. Raises UnreadableFileError if a column is missing."""
    if missing := [name for name in COLUMNS if name not in table.header]:
        raise UnreadableFileError(f"Our own files have the columns {', '.join(missing)}; this one lacks them.")
    at = {name: table.header.index(name) for name in (KEYS, *COLUMNS)}
    reading = Reading(TABLE, rows=table.count)
    seen: set[str] = set()
    for row in table.rows():
        if len(row.cells) != len(table.header):
            reading.reject(row.line, f"{len(row.cells)} cells where the first row names {len(table.header)} columns.")
            continue
        try:
            lot = _lot({name: plain(row.cells[place]) for name, place in at.items()}, prices, most_per_row)
        except RowError as error:
            reading.reject(row.line, str(error))
            continue
        if seen.isdisjoint(lot.keys):
            seen.update(lot.keys)
            reading.held.append(lot)
        else:
            reading.reject(row.line, "These bottles are in the file twice.")
    return reading


def _lot(cells: dict[str, str], prices: Prices, most_per_row: int) -> Lot:
    def text(name: str) -> str:
        return lots.within(COLUMNS[name], cells[name])

    keys = [_unpacked(key) for key in cells[KEYS].split()]
    if not keys:
        raise RowError(f"{KEYS}: there is none.")
    if not text("Name"):
        raise RowError("Name: there is none.")
    if cells["Colour"] not in COLOURS:
        raise RowError(f"Colour: {cells['Colour'][:40]!r} is none.")
    if not cells["Size ml"].isdecimal() or not 50 <= int(cells["Size ml"][:6]) <= 30_000:
        raise RowError(f"Size ml: {cells['Size ml'][:40]!r} is none of 50 to 30000.")
    count = lots.quantity(cells["Quantity"], most=most_per_row)
    if not count:
        raise RowError("Quantity: there is none.")
    facts = Facts(
        text("Name"),
        text("Producer"),
        *lots.vintage(cells["Vintage"]),
        int(cells["Size ml"]),
        cells["Colour"],
        text("Country"),
        text("Region"),
        *lots.price("Paid", cells["Paid"], cells["Paid currency"], prices),
        _day(cells["Purchased on"]),
        text("Store"),
        text("Location"),
        text("Bin"),
        *lots.window(cells["Drink from"], cells["Drink until"]),
        text("Note"),
        *lots.price("Own value", cells["Own value"], cells["Own value currency"], prices),
        text("Source wine"),
        "",
        text("Wine id"),
    )
    return Lot(facts, count, keys)


def _day(cell: str) -> date | None:
    try:
        return date.fromisoformat(cell) if cell else None
    except ValueError as error:
        raise RowError(f"Purchased on: {cell[:40]!r} is no date as year-month-day.") from error
