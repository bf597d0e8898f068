"""A file as somebody saved it, made into rows: encoding, delimiter, quotes, line numbers. Pure.

Guarantee: a file that is a web page, is cut in the middle of a row, or is not text, is refused in words and as a
whole. Used by the readers of this package.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from pricing.catalogues.decode import text_of
from pricing.catalogues.errors import UnreadableFileError as NoTextError

DELIMITERS = ("\t", ",", ";")


class UnreadableFileError(Exception):
    """Nothing of this file can be taken; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row, and the line of the file it begins at."""

    line: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A header and the rows beneath it. Rows are read anew each time they are asked for: kept, they are ten files."""

    header: list[str]
    count: int
    text: str
    delimiter: str
    quoting: Literal[0, 3]

    def rows(self) -> Iterator[Row]:
        """Rows may be shorter or longer than the header, but for the last, which is never shorter."""
        lines = _read(self.text, self.delimiter, self.quoting)
        next(lines)
        for line, cells in lines:
            if any(cells):
                yield Row(line, [cell.strip() for cell in cells])

    def cells(self, names: Collection[str]) -> Iterator[str]:
        """The cells of these columns, where there are any."""
        places = [place for place, name in enumerate(self.header) if name in names]
        lines = _read(self.text, self.delimiter, self.quoting)
        next(lines)
        for _, cells in lines:
            yield from (cells[place].strip() for place in places if place < len(cells))


def read_table(content: bytes) -> Table:
    """Read a file of tabs, commas or semicolons whose first row names the columns. Raises UnreadableFileError."""
    text = _decoded(content)
    if not text.strip():
        raise UnreadableFileError("The file is empty. Export it again.")
    if text.lstrip()[:1] == "<":
        raise UnreadableFileError(
            "This is a web page, not an export. It comes when one is not signed in: sign in there, and export again."
        )
    text = text.lstrip("\r\n")
    first_line = text.split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first_line.count)
    if not first_line.count(delimiter):
        raise UnreadableFileError("The first line names no columns. Export the table as CSV or as tabs.")
    return _checked(text, delimiter)


def _decoded(content: bytes) -> str:
    """As catalogues are read: UTF-8, or what a mark says, else Windows-1252, in which browsers save."""
    try:
        return "".join(text_of(iter([content]), ""))
    except NoTextError as error:
        raise UnreadableFileError(str(error)) from error


def _checked(text: str, delimiter: str) -> Table:
    """Reads it all once. In a file of tabs a quotation mark may be only one: then nothing is quoted."""
    found = _shape(text, delimiter, csv.QUOTE_MINIMAL)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
    if delimiter == "\t" and '"' in text and not (found and found.even):
        found, quoting = _shape(text, delimiter, csv.QUOTE_NONE), csv.QUOTE_NONE
    if found is None:
        raise UnreadableFileError("A quotation mark is opened and never closed: the file is cut. Export it again.")
    if found.last_width < len(found.header):
        raise UnreadableFileError(f"The file ends in the middle of line {found.last_line}: it is cut. Export it again.")
    return Table(found.header, found.count, text, delimiter, quoting)


@dataclass(slots=True)
class _Shape:
    header: list[str]
    count: int = 0
    even: bool = True
    last_line: int = 0
    last_width: int = 0


def _shape(text: str, delimiter: str, quoting: Literal[0, 3]) -> _Shape | None:
    """None where quotes do not close."""
    try:
        lines = _read(text, delimiter, quoting)
        header = [name.strip() for name in next(lines)[1]]
        found = _Shape(header, last_width=len(header))
        for line, cells in lines:
            if any(cells):
                found.count += 1
                found.last_line, found.last_width = line, len(cells)
                found.even = found.even and len(cells) == len(header)
    except csv.Error:
        return None
    return found


def _read(text: str, delimiter: str, quoting: Literal[0, 3]) -> Iterator[tuple[int, list[str]]]:
    """The rows, the header's first, each with the line that it begins at."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True)
    line = 1
    for cells in reader:
        yield line, cells
        line = reader.line_num + 1
