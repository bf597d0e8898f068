"""A file as somebody saved it, made into rows: encoding, delimiter, quotes, line numbers. Pure.

Guarantee: a file that is a web page, is cut in the middle of a row, or is not text, is refused in words and as a
whole. Used by the readers of this package.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pricing.catalogues.decode import text_of
from pricing.catalogues.errors import UnreadableFileError as NoTextError

DELIMITERS = ("\t", ",", ";")
LONGEST_CELL = 10_000_000


class UnreadableFileError(Exception):
    """Nothing of this file can be taken; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row, and the line of the file it begins at."""

    line: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A header and its rows. A row may be shorter or longer than the header; the last is never shorter."""

    header: list[str]
    rows: list[Row]

    def column(self, name: str) -> Iterator[str]:
        """The cells of a column, of the rows that have it; none if there is no such column."""
        if name in self.header:
            at = self.header.index(name)
            yield from (row.cells[at] for row in self.rows if at < len(row.cells))


def read_table(content: bytes) -> Table:
    """Read a file of tabs, commas or semicolons whose first row names the columns. Raises UnreadableFileError."""
    text = _decoded(content)
    if not text.strip():
        raise UnreadableFileError("The file is empty. Export it again.")
    if text.lstrip()[:1] == "<":
        raise UnreadableFileError(
            "This is a web page, not an export. It comes when one is not signed in: sign in there, and export again."
        )
    first_line = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first_line.count)
    if not first_line.count(delimiter):
        raise UnreadableFileError("The first line names no columns. Export the table as CSV or as tabs.")
    rows = _rows(text, delimiter)
    header = [name.strip() for name in rows[0].cells]
    rows = [row for row in rows[1:] if any(row.cells)]
    if rows and len(rows[-1].cells) < len(header):
        raise UnreadableFileError(f"The file ends in the middle of line {rows[-1].line}: it is cut. Export it again.")
    return Table(header, rows)


def _decoded(content: bytes) -> str:
    """As catalogues are read: UTF-8, or what a mark says, else Windows-1252, in which browsers save."""
    try:
        return "".join(text_of(iter([content]), ""))
    except NoTextError as error:
        raise UnreadableFileError(str(error)) from error


def _rows(text: str, delimiter: str) -> list[Row]:
    """With quotes as CSV has them. In a file of tabs a quotation mark may also be one: then nothing is quoted."""
    try:
        rows = list(_read(text, delimiter, csv.QUOTE_MINIMAL))
    except csv.Error:
        rows = []
    quoted = bool(rows) and all(len(row.cells) == len(rows[0].cells) for row in rows)
    if delimiter == "\t" and '"' in text and not quoted:
        return list(_read(text, delimiter, csv.QUOTE_NONE))
    if not rows:
        raise UnreadableFileError("A quotation mark is opened and never closed: the file is cut. Export it again.")
    return rows


def _read(text: str, delimiter: str, quoting: Literal[0, 3]) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True)
    line = 1
    for cells in reader:
        yield Row(line, [cell.strip() for cell in cells])
        line = reader.line_num + 1
