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
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

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
_Paid = tuple[Decimal | None, str]


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
    reading = Reading(f"CellarTracker {kind}", rows=table.count)
    rows = _Rows(table, kind, prices, reading, most_per_row)
    for row in table.rows():
        if len(row.cells) != len(table.header):
            reading.reject(row.line, f"{len(row.cells)} cells where the first row names {len(table.header)} columns.")
            continue
        try:
            rows.take(row.cells)
        except RowError as error:
            reading.reject(row.line, str(error))
    return reading


class _Cells(NamedTuple):
    """The cells of a row that we look at, "" for columns that its table does not have. In CellarTracker's words."""

    iWine: str  # noqa: N815
    Wine: str
    Vintage: str
    Size: str
    BottleSize: str
    Producer: str
    Type: str
    Country: str
    Region: str
    Appellation: str
    Locale: str
    Location: str
    Bin: str
    StoreName: str
    Store: str
    PurchaseDate: str
    DeliveryDate: str
    BeginConsume: str
    EndConsume: str
    BottleNote: str
    UPC: str
    Barcode: str
    iPurchase: str  # noqa: N815
    BottleState: str
    Quantity: str
    Pending: str
    Remaining: str
    Delivered: str
    Price: str
    Currency: str
    NativePrice: str
    NativePriceCurrency: str
    BottleCost: str
    BottleCostCurrency: str
    MyValue: str


class _Rows:
    """The rows of one table. What many rows have in common is read once."""

    def __init__(self, table: Table, kind: str, prices: Prices, reading: Reading, most_per_row: int) -> None:
        at = {name: place for place, name in enumerate(table.header)}
        # One call for all cells of a row; what is missing is taken from an empty cell behind the last.
        self.pick = itemgetter(*(at.get(name, len(table.header)) for name in _Cells._fields))
        self.has_country = "Country" in at
        self.kind = kind
        self.reading = reading
        self.most = most_per_row
        self.of_kind: Callable[[_Cells], None] = getattr(self, f"_{kind.lower()}")
        self.counted: Counter[str] = Counter()
        self.seen: set[str] = set()
        self.price = lru_cache(maxsize=10_000)(lambda name, cell, currency: lots.price(name, cell, currency, prices))

    def take(self, cells: list[str]) -> None:
        """Put one row where it belongs. Raises RowError."""
        self.of_kind(_Cells._make(self.pick([*cells, ""])))

    # Each table's own: whether the bottles are in the cellar, how many, what they cost, and what tells them apart.

    def _inventory(self, row: _Cells) -> None:
        if row.Location.lower() == "(pending)":
            self.reading.pending += 1
            return
        if not row.Barcode or row.Barcode in self.seen:
            raise RowError(
                f"Barcode: {row.Barcode[:40]!r} is there twice." if row.Barcode else "Barcode: there is none."
            )
        facts = self._facts(row, row.Size, self._native(row))
        self.seen.add(row.Barcode)
        self.reading.hold(facts, [f"inventory:{row.Barcode}"], 1)

    def _list(self, row: _Cells) -> None:
        held = lots.quantity(row.Quantity or "0", most=self.most)
        pending = lots.quantity(row.Pending or "0", most=self.most)
        if held:
            own = self.price("MyValue", row.MyValue, row.Currency)
            facts = self._facts(row, row.Size, self.price("Price", row.Price, row.Currency), own)
            self._hold(facts, f"{facts.source_wine}|{facts.size_ml}", held)
        self.reading.pending += pending

    def _bottles(self, row: _Cells) -> None:
        count = lots.quantity(row.Quantity or "1", most=self.most)
        if row.BottleState == PENDING:
            self.reading.pending += count
        elif row.BottleState != IN_CELLAR:
            self.reading.consumed += count
        else:
            facts = self._facts(row, row.BottleSize, self.price("BottleCost", row.BottleCost, row.BottleCostCurrency))
            bought = f"{facts.purchased_on}|{row.DeliveryDate}|{facts.paid}{facts.paid_currency}"
            self._hold(facts, f"{facts.source_wine}|{facts.size_ml}|{bought}", count)

    def _purchase(self, row: _Cells) -> None:
        left = lots.quantity(row.Remaining, most=self.most)
        bought = lots.quantity(row.Quantity or str(left), most=self.most)
        if row.Delivered.lower() == "false":
            self.reading.pending += left
            return
        if left:
            self._hold(self._facts(row, row.Size, self._native(row)), row.iPurchase, left)
        self.reading.consumed += max(bought - left, 0)

    def _consumed(self, row: _Cells) -> None:
        self.reading.consumed += 1

    def _hold(self, facts: Facts, identity: str, count: int) -> None:
        """Number the bottles that nothing tells apart, over the whole file, so that they have a key each."""
        first = self.counted[identity]
        self.counted[identity] += count
        table = self.kind.lower()
        keys = [f"{table}:{identity}#{number}" for number in range(first + 1, first + count + 1)]
        self.reading.hold(facts, keys, count)

    def _native(self, row: _Cells) -> _Paid:
        """As it was paid; older files have the price in their owner's own currency only."""
        if row.NativePriceCurrency:
            return self.price("NativePrice", row.NativePrice, row.NativePriceCurrency)
        return self.price("Price", row.Price, row.Currency)

    def _facts(self, row: _Cells, size: str, paid: _Paid, own: _Paid = (None, "")) -> Facts:
        name = lots.text("name", row.Wine)
        if not name:
            raise RowError("Wine: there is no name.")
        return Facts(
            name,
            _text("producer", row.Producer),
            *_vintage(row.Vintage),
            _size(size),
            _colour(row.Type),
            *(_place(row.Country, row.Appellation, row.Region) if self.has_country else _locale(row.Locale)),
            *paid,
            _date(row.PurchaseDate),
            _text("store", row.StoreName or row.Store),
            _text("location", row.Location),
            _text("bin", row.Bin),
            *_window(row.BeginConsume, row.EndConsume),
            lots.text("note", row.BottleNote) if row.BottleNote else "",
            *own,
            f"ct:{row.iWine}",
            row.UPC,
        )


# A cellar has few vintages, sizes, places and dates, and many bottles.
_text = lru_cache(maxsize=10_000)(lots.text)
_vintage = lru_cache(maxsize=1_000)(lots.vintage)
_size = lru_cache(maxsize=1_000)(lots.size)
_window = lru_cache(maxsize=10_000)(lots.window)


@lru_cache(maxsize=10_000)
def _place(country: str, appellation: str, region: str) -> tuple[str, str]:
    return lots.text("country", country), lots.region((appellation, region))


@lru_cache(maxsize=10_000)
def _locale(locale: str) -> tuple[str, str]:
    """“France, Bordeaux, Médoc, Pauillac”: from the widest to the narrowest."""
    where = [part.strip() for part in locale.split(",")]
    return _place(where[0], where[-1] if len(where) > 1 else "", where[1] if len(where) > 1 else "")


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
