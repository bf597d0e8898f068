"""CellarTracker's exports: which of its tables a file is, and what its rows say. Pure.

The web query's tables (tabs, UTF-8) and the browser's files (CSV, often Windows-1252) have the same columns. Its words:
vintage 1001 is NV; 9999, Unknown and (n/a) are nothing; a price of 0 was not recorded; dates are month/day/year.
Guarantee: pending and consumed bottles are counted, never held. Used by reader.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import date
from functools import lru_cache

from winecellar.cellars.files import lots
from winecellar.cellars.files.lots import EMPTY_WORDS, Facts, Prices, Reading, RowError
from winecellar.cellars.files.table import Table, UnreadableFileError

INVENTORY, LIST, BOTTLES, PURCHASE, CONSUMED = "Inventory", "List", "Bottles", "Purchase", "Consumed"
# The first of these that a header has says which table it is.
MARKS = {
    "iConsumed": CONSUMED,
    "BottleState": BOTTLES,
    "iPurchase": PURCHASE,
    "Barcode": INVENTORY,
    "Pending": LIST,
}
NEEDED = {
    INVENTORY: ("iWine", "Wine", "Vintage", "Size", "Location"),
    LIST: ("iWine", "Wine", "Vintage", "Size", "Quantity"),
    BOTTLES: ("iWine", "Wine", "Vintage", "BottleSize"),
    PURCHASE: ("iWine", "Wine", "Vintage", "Size", "Remaining", "Delivered"),
    CONSUMED: ("iWine", "Wine"),
}
PRICES = ("Price", "NativePrice", "BottleCost", "Valuation", "Value", "MyValue", "CTValue")
COLOURS = {"red": "red", "white": "white", "rosé": "rose", "rose": "rose", "orange": "white"}
KINDS = {"sparkling": "sparkling", "fortified": "fortified", "sweet": "sweet", "dessert": "sweet"}
_DATE = re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})")
IN_CELLAR, PENDING = "1", "-1"


def table_of(header: list[str]) -> str | None:
    """Which table has this header; None if it is none of CellarTracker's that we know."""
    if "iWine" not in header:
        return None
    return next((table for mark, table in MARKS.items() if mark in header), None)


def read(table: Table, prices: Prices, *, most_per_row: int) -> Reading:
    """Read one of its tables. Raises UnreadableFileError if it lacks a column, or has no bottles by its nature."""
    kind = table_of(table.header)
    if kind is None:
        raise UnreadableFileError(
            "This table of CellarTracker’s lists no bottles. Export Inventory, List, Bottles or Purchase."
        )
    if missing := [name for name in NEEDED[kind] if name not in table.header]:
        raise UnreadableFileError(
            f"CellarTracker’s table {kind} has the columns {', '.join(missing)}; this file lacks them."
        )
    reading = Reading(f"CellarTracker {kind}", rows=len(table.rows))
    rows = _Rows(table, kind, prices, reading, most_per_row)
    for row in table.rows:
        if len(row.cells) != len(table.header):
            reading.reject(row.line, f"{len(row.cells)} cells where the first row names {len(table.header)} columns.")
            continue
        try:
            rows.take(row.cells)
        except RowError as error:
            reading.reject(row.line, str(error))
    return reading


class _Rows:
    """The rows of one table. What many rows have in common is read once."""

    def __init__(self, table: Table, kind: str, prices: Prices, reading: Reading, most_per_row: int) -> None:
        self.at = {name: place for place, name in enumerate(table.header)}
        self.kind = kind
        self.reading = reading
        self.most = most_per_row
        self.take: Callable[[list[str]], None] = getattr(self, f"_{kind.lower()}")
        self.counted: Counter[str] = Counter()
        self.seen: set[str] = set()
        self.price = lru_cache(maxsize=10_000)(lambda name, cell, currency: lots.price(name, cell, currency, prices))

    def cell(self, cells: list[str], name: str) -> str:
        place = self.at.get(name)
        return "" if place is None else cells[place]

    # Each table's own: whether the bottles are in the cellar, how many, what they cost, and what tells them apart.

    def _inventory(self, cells: list[str]) -> None:
        if self.cell(cells, "Location").lower() == "(pending)":
            self.reading.pending += 1
            return
        barcode = self.cell(cells, "Barcode")
        if not barcode or barcode in self.seen:
            raise RowError(f"Barcode: {barcode[:40]!r} is there twice." if barcode else "Barcode: there is none.")
        facts = self._facts(cells, "Size", ("NativePrice", "NativePriceCurrency"))
        self.seen.add(barcode)
        self.reading.hold(facts, [f"inventory:{barcode}"], 1)

    def _list(self, cells: list[str]) -> None:
        held = lots.quantity(self.cell(cells, "Quantity") or "0", most=self.most)
        pending = lots.quantity(self.cell(cells, "Pending") or "0", most=self.most)
        if held:
            facts = self._facts(cells, "Size", ("Price", "Currency"), ("MyValue", "Currency"))
            self._hold(facts, f"{facts.source_wine}|{facts.size_ml}", held)
        self.reading.pending += pending

    def _bottles(self, cells: list[str]) -> None:
        state = self.cell(cells, "BottleState")
        count = lots.quantity(self.cell(cells, "Quantity") or "1", most=self.most)
        if state == PENDING:
            self.reading.pending += count
        elif state != IN_CELLAR:
            self.reading.consumed += count
        else:
            facts = self._facts(cells, "BottleSize", ("BottleCost", "BottleCostCurrency"))
            bought = f"{facts.purchased_on}|{self.cell(cells, 'DeliveryDate')}|{facts.paid}{facts.paid_currency}"
            self._hold(facts, f"{facts.source_wine}|{facts.size_ml}|{bought}", count)

    def _purchase(self, cells: list[str]) -> None:
        left = lots.quantity(self.cell(cells, "Remaining"), most=self.most)
        bought = lots.quantity(self.cell(cells, "Quantity") or str(left), most=self.most)
        if self.cell(cells, "Delivered").lower() == "false":
            self.reading.pending += left
            return
        if left:
            facts = self._facts(cells, "Size", ("NativePrice", "NativePriceCurrency"))
            self._hold(facts, self.cell(cells, "iPurchase"), left)
        self.reading.consumed += max(bought - left, 0)

    def _consumed(self, cells: list[str]) -> None:
        self.reading.consumed += 1

    def _hold(self, facts: Facts, identity: str, count: int) -> None:
        """Number the bottles that nothing tells apart, over the whole file, so that they have a key each."""
        first = self.counted[identity]
        self.counted[identity] += count
        table = self.kind.lower()
        keys = [f"{table}:{identity}#{number}" for number in range(first + 1, first + count + 1)]
        self.reading.hold(facts, keys, count)

    def _facts(self, cells: list[str], size: str, paid: tuple[str, str], own: tuple[str, str] | None = None) -> Facts:
        cell = self.cell
        name = lots.text("name", cell(cells, "Wine"))
        if not name:
            raise RowError("Wine: there is no name.")
        amount, currency = cell(cells, paid[0]), cell(cells, paid[1])
        if not currency:  # older files have their own currency's columns only
            amount, currency = cell(cells, "Price"), cell(cells, "Currency")
        worth = self.price(own[0], cell(cells, own[0]), cell(cells, own[1])) if own else (None, "")
        return Facts(
            name,
            lots.text("producer", cell(cells, "Producer")),
            *_vintage(cell(cells, "Vintage")),
            _size(cell(cells, size)),
            _colour(cell(cells, "Type")),
            *self._place(cells),
            *self.price(paid[0], amount, currency),
            _date(cell(cells, "PurchaseDate")),
            lots.text("store", cell(cells, "StoreName") or cell(cells, "Store")),
            lots.text("location", cell(cells, "Location")),
            lots.text("bin", cell(cells, "Bin")),
            *_window(cell(cells, "BeginConsume"), cell(cells, "EndConsume")),
            lots.text("note", cell(cells, "BottleNote")),
            *worth,
            f"ct:{cell(cells, 'iWine')}",
            cell(cells, "UPC"),
        )

    def _place(self, cells: list[str]) -> tuple[str, str]:
        if "Country" in self.at:
            parts = (self.cell(cells, "Country"), self.cell(cells, "Appellation"), self.cell(cells, "Region"))
        else:
            where = [part.strip() for part in self.cell(cells, "Locale").split(",")]
            parts = (where[0], where[-1] if len(where) > 1 else "", where[1] if len(where) > 1 else "")
        return _place(*parts)


# A cellar has few vintages, sizes, places and dates, and many bottles.
_vintage = lru_cache(maxsize=1_000)(lots.vintage)
_size = lru_cache(maxsize=1_000)(lots.size)
_window = lru_cache(maxsize=10_000)(lots.window)


@lru_cache(maxsize=10_000)
def _place(country: str, appellation: str, region: str) -> tuple[str, str]:
    return lots.text("country", country), lots.region((appellation, region))


@lru_cache(maxsize=1_000)
def _colour(kind: str) -> str:
    """“White - Sweet/Dessert” is sweet, “Rosé” is rosé; beer, cider and spirits are none."""
    folded = kind.lower()
    said = next((colour for word, colour in KINDS.items() if word in folded), None)
    return said or COLOURS.get(folded.split(" ")[0], "")


@lru_cache(maxsize=10_000)
def _date(cell: str) -> date | None:
    if cell.lower() in EMPTY_WORDS:
        return None
    found = _DATE.fullmatch(cell)
    try:
        month, day, year = map(int, found.groups()) if found else (0, 0, 0)
        return date(year, month, day)
    except ValueError as error:
        raise RowError(f"PurchaseDate: {cell[:40]!r} is no date as month/day/year.") from error
