"""A catalogue file from its bytes to its rows. Pure; called by the refresh, and by nobody past it.

Guarantee: rows come in the file's order, each id once; the rows end either with the file, whole, or in
UnreadableFileError after those that could be read. Memory grows with the ids alone, which must be known to be unique,
by some twenty bytes for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from pricing.catalogues import delimited, google, vivino, wine_searcher
from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.options import FileSettings, Format, Limits
from pricing.catalogues.rows import Raw, Rejected
from pricing.catalogues.seen import Seen
from pricing.catalogues.sniff import refuse_other_things, sniff
from pricing.catalogues.stream import Text, open_stream

READERS: dict[Format, Callable[[Text, FileSettings, datetime], Iterator[Raw | Rejected]]] = {
    Format.DELIMITED: delimited.read,
    Format.GOOGLE_XML: google.read_xml,
    Format.GOOGLE_TEXT: google.read_text,
    Format.WINE_SEARCHER_XML: wine_searcher.read_xml,
    Format.WINE_SEARCHER_TEXT: wine_searcher.read_text,
    Format.VIVINO_XML: vivino.read,
}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A file that was opened: the format that it is in, and its rows, which can be taken once."""

    format: Format
    rows: Iterator[Raw | Rejected]


def open_catalogue(stream: BinaryIO, *, name: str, settings: FileSettings, limits: Limits, now: datetime) -> Catalogue:
    """Look at a file's beginning. Raises UnreadableFileError, and so may the rows while they are taken.

    `name` is the file's, or ""; `now` is the time at which its prices count, which decides about sales.
    """
    text = open_stream(stream, encoding=settings.encoding, limits=limits)
    refuse_other_things(text.head)
    found = Format(settings.format) if settings.format else sniff(name, text.head, settings)
    return Catalogue(found, _unique(READERS[found](text, settings, now), limits))


def _unique(rows: Iterator[Raw | Rejected], limits: Limits) -> Iterator[Raw | Rejected]:
    seen = Seen()
    for number, row in enumerate(rows, start=1):
        if number > limits.rows:
            raise UnreadableFileError(f"It has more than {limits.rows:,} rows. Send it in parts.", line=row.line)
        if isinstance(row, Rejected):
            yield row  # its id stays free: a later row may be the right one
        elif seen.add(row.source_id):
            yield row
        else:
            reason = "The id stands in an earlier row too; that row counts."
            yield Rejected(row.line, "source_id", reason, row.source_id)
