"""What a file says is in a cellar: lots, and the rows that cannot be taken. Pure.

Guarantee: every row of the file is in one lot, counted as pending or consumed, or rejected with its line and a reason.
Used by the readers of this package and by imports.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from pricing.contract import CURRENCIES, LARGEST_PRICE
from pricing.sizes import UnclearSizeError, read_packing
from pricing.titles import EARLIEST_VINTAGE, LATEST_VINTAGE, UnclearVintageError, read_vintage

CENT = Decimal("0.01")
# As the columns of cellars_bottle.
LONGEST = {"name": 200, "producer": 200, "country": 80, "region": 120, "store": 120, "location": 80, "bin": 80} | {
    "source_wine": 40,
    "wine_id": 40,
}
LONGEST_NOTE = 1000
EMPTY_WORDS = frozenset({"", "unknown", "(n/a)", "n/a", "none", "9999"})

Prices = Callable[[str], Decimal | None]


class RowError(Exception):
    """This row cannot be taken; the message names the field and says why."""


class Facts(NamedTuple):
    """Everything about a bottle but its key. Bottles of equal facts are one lot. A tuple: one is made for each row."""

    name: str
    producer: str = ""
    vintage: int | None = None
    non_vintage: bool = False
    size_ml: int = 750
    colour: str = ""
    country: str = ""
    region: str = ""
    paid: Decimal | None = None
    paid_currency: str = ""
    purchased_on: date | None = None
    store: str = ""
    location: str = ""
    bin: str = ""
    drink_from: int | None = None
    drink_until: int | None = None
    note: str = ""
    own_value: Decimal | None = None
    own_currency: str = ""
    source_wine: str = ""
    gtin: str = ""
    wine_id: str = ""


@dataclass(slots=True)
class Lot:
    """So many bottles with equal facts. `keys` tell them from others, one for each or one for all."""

    facts: Facts
    quantity: int
    keys: list[str]


@dataclass(frozen=True, slots=True)
class Rejected:
    line: int
    reason: str


@dataclass(slots=True)
class Reading:
    """What a file says. `pending` and `consumed` are bottles that are not, or no longer, in the cellar."""

    table: str
    rows: int = 0
    held: list[Lot] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    pending: int = 0
    consumed: int = 0
    _alike: dict[Facts, Lot] = field(default_factory=dict)

    def hold(self, facts: Facts, keys: list[str], quantity: int) -> None:
        """Put bottles to the others that are like them."""
        lot = self._alike.get(facts)
        if lot is None:
            self._alike[facts] = lot = Lot(facts, quantity, keys)
            self.held.append(lot)
        else:
            lot.quantity += quantity
            lot.keys += keys

    def reject(self, line: int, reason: str) -> None:
        self.rejected.append(Rejected(line, reason))

    @property
    def key_prefix(self) -> str:
        """What the keys of this table begin with."""
        return f"{self.table.rpartition(' ')[2].lower()}:"

    @property
    def bottles(self) -> int:
        return sum(lot.quantity for lot in self.held)

    @property
    def non_vintage(self) -> int:
        return sum(lot.quantity for lot in self.held if lot.facts.non_vintage)


class AbsurdFileError(Exception):
    """The file's totals cannot be meant; the message says them."""


def check_totals(reading: Reading, *, most: int, mean: int) -> None:
    """Refuse what would fill a cellar with a column that was read wrongly. Raises AbsurdFileError."""
    bottles = reading.bottles
    counted = f"{reading.rows:,} rows would make {bottles:,} bottles"
    if bottles > most:
        raise AbsurdFileError(f"{counted}; a cellar holds at most {most:,}. Look at the column of quantities.")
    if bottles > mean * max(reading.rows, 1):
        raise AbsurdFileError(
            f"{counted}, more than {mean} in each row. That is seldom meant: look at the column of quantities."
        )


def check_room(held: int, fresh: Iterable[Lot], *, most: int) -> None:
    """Refuse what would not fit into the cellar beside what it holds. Raises AbsurdFileError."""
    added = sum(lot.quantity for lot in fresh)
    if held + added > most:
        raise AbsurdFileError(f"{held:,} bottles are there and {added:,} would be added; a cellar holds {most:,}.")


def new_lots(
    reading: Reading, *, known: Collection[str], by_other_tables: Counter[tuple[str, int]]
) -> tuple[list[Lot], int]:
    """What of a file is not in the cellar yet, and how many bottles are.

    A bottle is known by its key. Several tables speak of the same bottles under other keys: of a wine and size only
    what exceeds what other tables have brought (`by_other_tables`) is new.
    """
    fresh, there, elsewhere = [], 0, Counter(by_other_tables)
    for lot in reading.held:
        unknown = [key for key in lot.keys if key not in known] if known else lot.keys
        if len(lot.keys) != lot.quantity:  # one key for all
            if len(unknown) == len(lot.keys):
                fresh.append(lot)
            else:
                there += lot.quantity
            continue
        wine = (lot.facts.source_wine, lot.facts.size_ml)
        same = min(elsewhere[wine], len(unknown)) if wine[0] else 0
        elsewhere[wine] -= same
        there += len(lot.keys) - len(unknown) + same
        if unknown[same:]:
            fresh.append(Lot(lot.facts, len(unknown) - same, unknown[same:]))
    return fresh, there


# --- Cells that several files have -----------------------------------------------------------------------------


def text(name: str, cell: str) -> str:
    """A text as it stands; nothing where the file's word for nothing stands. Raises RowError if it is too long."""
    return "" if cell.lower() in EMPTY_WORDS else within(name, cell)


def within(name: str, cell: str) -> str:
    """A text as it stands. Raises RowError if it is too long for its column."""
    longest = LONGEST.get(name, LONGEST_NOTE)
    if len(cell) > longest:
        raise RowError(f"{name}: more than {longest} letters.")
    return cell


def vintage(cell: str) -> tuple[int | None, bool]:
    """The year, and whether it is NV on purpose."""
    try:
        found = read_vintage(cell)
    except UnclearVintageError as error:
        raise RowError(f"vintage: {cell[:40]!r} is none. Write a year, NV, or nothing.") from error
    return (found.year, found.year is None) if found else (None, False)


def size(cell: str) -> int:
    try:
        packing = read_packing(cell)
    except UnclearSizeError as error:
        raise RowError(f"size: {cell[:40]!r}: {error}") from error
    if packing.pack != 1:
        raise RowError(f"size: {cell[:40]!r} is a pack. Write the size of one bottle, and the quantity beside it.")
    return packing.size_ml


def quantity(cell: str, *, most: int) -> int:
    if not (cell.isascii() and cell.isdigit()) or len(cell) > 9:
        raise RowError(f"quantity: {cell[:40]!r} is no whole number.")
    if int(cell) > most:
        raise RowError(f"quantity: {int(cell):,} in one row. More than {most:,} is taken for a mistake.")
    return int(cell)


def year(name: str, cell: str) -> int | None:
    if cell.lower() in EMPTY_WORDS or cell == "0":
        return None
    if not (cell.isascii() and cell.isdigit() and EARLIEST_VINTAGE <= int(cell) <= LATEST_VINTAGE):
        raise RowError(f"{name}: {cell[:40]!r} is no year.")
    return int(cell)


def window(begins: str, ends: str) -> tuple[int | None, int | None]:
    first, last = year("drink from", begins), year("drink until", ends)
    if first and last and last < first:
        raise RowError(f"drink until: {last} is before drink from, {first}.")
    return first, last


def price(name: str, cell: str, currency: str, prices: Prices) -> tuple[Decimal | None, str]:
    """An amount to the cent and its currency; none of both for 0, which means that none was recorded."""
    try:
        amount = prices(cell)
    except ValueError as error:
        raise RowError(f"{name}: {error}") from error
    amount = amount.quantize(CENT, ROUND_HALF_UP) if amount else None
    if not amount:
        return None, ""
    if not 0 < amount <= LARGEST_PRICE:
        raise RowError(f"{name}: {cell[:40]} is not between 0 and {LARGEST_PRICE:,}.")
    if currency not in CURRENCIES:
        raise RowError(f"{name}: {currency[:10]!r} is no currency.")
    return amount, currency


def region(parts: Iterable[str]) -> str:
    """“Pomerol, Bordeaux”: from the narrowest to the widest, each once."""
    said = [part for part in parts if part.lower() not in EMPTY_WORDS]
    return text("region", ", ".join(dict.fromkeys(said)))
