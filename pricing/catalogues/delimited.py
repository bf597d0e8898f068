"""Rows with a delimiter between cells: CSV, tabs, semicolons, pipes. Pure; called by reading.py and its siblings.

Guarantee: a row is read as it stands or rejected with its line; a file that ends within a row, or whose rows cannot
be told apart, ends in UnreadableFileError after the rows before. Never is part of a row taken for the whole.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from pricing.catalogues.columns import NAMES, recognise
from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.options import DELIMITERS, Field, FileSettings
from pricing.catalogues.rows import LONGEST_ID, Raw, Rejected, checked, identity
from pricing.catalogues.sales import UnclearDatesError, price_now
from pricing.catalogues.stream import Text

if TYPE_CHECKING:
    from _csv import Reader  # the type has no public name

RAW_FIELDS = tuple(Field(name) for name in Raw._fields[1:])
# Fields whose beginning is as good a text as the whole, and means another thing or price.
CUT_MATTERS = frozenset(
    {Field.SOURCE_ID, Field.TITLE, Field.SIZE, Field.PACK, Field.LWIN, Field.WINE_ID, Field.PRICE, Field.SALE_PRICE}
)
NAMES_DELIMITER = "sep="  # Excel's own first line
Names = Mapping[Field, tuple[str, ...]]


def read(text: Text, settings: FileSettings, now: datetime) -> Iterator[Raw | Rejected]:
    return read_named(text, settings, now, NAMES)


def read_named(
    text: Text, settings: FileSettings, now: datetime, names: Names, fixed: Sequence[str] = ()
) -> Iterator[Raw | Rejected]:
    """Read with a format's own names of columns. `fixed` is their order in a file whose first line has no names."""
    delimiter = settings.delimiter or find_delimiter(text.head, settings, names, fixed)
    reader = csv.reader(text.lines(), delimiter=delimiter, strict=True)
    try:
        cells = _next(reader)
        if cells and cells[0].lower().startswith(NAMES_DELIMITER):
            cells = _next(reader)
    except csv.Error as error:
        raise UnreadableFileError("The quotes of its first line are wrong.", line=1) from error
    if not cells:
        raise UnreadableFileError("It has no rows.", line=1)
    if fixed and not _has_names(cells, settings, names):
        rows = _Rows(text, recognise(fixed, settings, names), len(fixed), settings, now)
        yield rows.row(cells, 1)
    else:
        rows = _Rows(text, recognise(cells, settings, names), len(cells), settings, now)
    yield from rows.rows(reader)


def _next(reader: Iterator[list[str]]) -> list[str]:
    return next((cells for cells in reader if cells), [])


def find_delimiter(head: str, settings: FileSettings, names: Names, fixed: Sequence[str] = ()) -> str:
    """The delimiter with which the first line names the columns. Raises UnreadableFileError if none or several do."""
    line = next((each for each in head.splitlines() if each.strip()), "")
    if line.lower().startswith(NAMES_DELIMITER) and line[len(NAMES_DELIMITER) :].strip(" ") in DELIMITERS:
        return line[len(NAMES_DELIMITER) :].strip(" ")
    named = {each: cells for each in DELIMITERS if _has_names(cells := _cells(line, each), settings, names)}
    if len(named) == 1:
        return next(iter(named))
    if not named and fixed:
        fitting = [each for each in DELIMITERS if len(_cells(line, each)) == len(fixed)]
        if len(fitting) == 1:
            return fitting[0]
    if named:
        raise UnreadableFileError("We cannot tell what stands between its columns. Tell us the delimiter.", line=1)
    likely = max(DELIMITERS, key=line.count)
    recognise(_cells(line, likely), settings, names)  # says what is missing
    raise UnreadableFileError("Its first line does not name its columns.", line=1)


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _has_names(cells: Sequence[str], settings: FileSettings, names: Names) -> bool:
    try:
        recognise(cells, settings, names)
    except UnreadableFileError:
        return False
    return True


class _Rows:
    """Makes rows of cells, once it is known which cell is what."""

    def __init__(
        self, text: Text, found: Mapping[Field, int], width: int, settings: FileSettings, now: datetime
    ) -> None:
        self.text = text
        self.width = width
        # A cell more at the end of each row is for the fields that the file does not have.
        self.take = itemgetter(*(found.get(field, width) for field in RAW_FIELDS))
        self.id_place = found.get(Field.SOURCE_ID, width)
        self.more = _More(found, now) if _More.needed(found) else None
        self.cut_matters = not settings.open_end and width - 1 in {found[field] for field in CUT_MATTERS & found.keys()}

    def rows(self, reader: Reader) -> Iterator[Raw | Rejected]:
        before = reader.line_num
        while not self.text.ended:
            try:
                for cells in reader:
                    line, before = before + 1, reader.line_num
                    if cells:
                        yield self.row(cells, line)
            except csv.Error as error:
                yield self.malformed(before + 1, reader.line_num, error)
                before = reader.line_num

    def row(self, cells: list[str], line: int) -> Raw | Rejected:
        if (self.text.open_end or len(cells) != self.width) and (rejected := self._uneven(cells, line)):
            return rejected
        cells.append("")
        raw = Raw._make((line, *map(str.strip, self.take(cells))))
        if self.more:
            completed = self.more.complete(raw, cells)
            if isinstance(completed, Rejected):
                return completed
            raw = completed
        if raw.source_id and raw.title and max(map(len, raw[1:])) <= LONGEST_ID:
            return raw
        return checked(raw)

    def _uneven(self, cells: Sequence[str], line: int) -> Rejected | None:
        """A row of another width, and the last row if no line end closes it."""
        uneven = len(cells) != self.width
        if self.text.open_end and uneven:
            raise UnreadableFileError("The file ends within this row: it was cut off. Send it again.", line=line)
        if self.text.open_end and self.cut_matters:
            reason = (
                "The file ends here without a line end, so that this row may be cut off. End the file with a line"
                " end, or tell us that yours have none."
            )
            raise UnreadableFileError(reason, line=line)
        if not uneven:
            return None
        source_id = cells[self.id_place].strip() if self.id_place < len(cells) else ""
        return Rejected(line, "", f"It has {len(cells)} cells, and the first line {self.width}.", source_id)

    def malformed(self, first: int, last: int, error: csv.Error) -> Rejected:
        """A row whose quotes are wrong, if it is surely one line: otherwise rows are hidden in it."""
        if self.text.open_end or self.text.ended:
            reason = "The file ends within a quoted cell of this row: it was cut off, or a quote is missing."
            raise UnreadableFileError(reason, line=first) from error
        if last != first:
            reason = f"A quoted cell of this row ends wrongly in line {last}, so that we cannot tell rows apart."
            raise UnreadableFileError(reason, line=first) from error
        return Rejected(first, "", "Its quotes are wrong. Within a quoted cell, write a quote twice.")


class _More:
    """What is put together from several cells, or made: names with their producer, packs, sales, ids."""

    PARTS = (Field.PRODUCER, Field.PACK, Field.SALE_PRICE, Field.SALE_DATES)

    def __init__(self, found: Mapping[Field, int], now: datetime) -> None:
        # The row has its empty cell at the end, which is where -1 points.
        self.take = itemgetter(*(found.get(field, -1) for field in self.PARTS))
        self.makes_ids = Field.SOURCE_ID not in found
        self.now = now

    @classmethod
    def needed(cls, found: Mapping[Field, int]) -> bool:
        return Field.SOURCE_ID not in found or not found.keys().isdisjoint(cls.PARTS)

    def complete(self, raw: Raw, cells: Sequence[str]) -> Raw | Rejected:
        producer, pack, sale, dates = map(str.strip, self.take(cells))
        line, source_id, title, size, vintage, gtin, lwin, wine_id, price, *rest = raw
        title, size = named(producer, title), packed(pack, size)
        if self.makes_ids:
            source_id = identity(title, size, vintage, gtin, lwin, wine_id)
        if sale:
            try:
                price = price_now(price, sale, dates, self.now)
            except UnclearDatesError as error:
                return Rejected(line, Field.SALE_DATES, str(error), source_id)
        # Not _replace, which a million rows would notice.
        return Raw._make((line, source_id, title, size, vintage, gtin, lwin, wine_id, price, *rest))


def named(producer: str, title: str) -> str:
    """A wine's name with its producer, unless that is part of it."""
    if not producer or not title or producer.casefold() in title.casefold():
        return title
    return f"{producer} {title}"


def packed(pack: str, size: str) -> str:
    """A size with the number of bottles; a number that is none stays in it, so that the size is unclear."""
    if pack in ("", "1"):
        return size
    return f"{pack} x {size or 'bottle'}"
