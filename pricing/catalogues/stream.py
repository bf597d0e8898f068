"""A file's text in pieces, whatever it is packed and encoded in. Pure; the readers' only source.

Guarantee: memory does not grow with the file; where it cannot be read further, the pieces end in UnreadableFileError,
after all that stands before.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from pricing.catalogues.decode import text_of
from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.inflate import inflated
from pricing.catalogues.options import Limits, encoding_named

HEAD = 1 << 16  # what is looked at to know what a file is
LONGEST_LINE = 1_000_000
_DECLARED = re.compile(rb"""<\?xml[^>]{0,100}?\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")


class Text:
    """The text of one file: look at `head` as often as you like, take the pieces once."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self.head = ""
        self._fault: UnreadableFileError | None = None
        try:
            while len(self.head) < HEAD and (piece := next(pieces, None)) is not None:
                self.head += piece
        except UnreadableFileError as fault:
            self._fault = fault  # in its place: rows may stand before it
        if not self.head.strip() and self._fault is None:
            raise UnreadableFileError("The file is empty.")
        self._rest = pieces
        self.ended = False  # true once a line was asked for after the last
        self.open_end = False  # true once `lines` has handed out a last line that has no line end

    def pieces(self) -> Iterator[str]:
        yield self.head
        if self._fault:
            raise self._fault
        yield from self._rest

    def lines(self) -> Iterator[str]:
        """Lines with their ends, of which there are three kinds."""
        return chain.from_iterable(self._groups())

    def _groups(self) -> Iterator[list[str]]:
        begun, number = "", 1
        for piece in self.pieces():
            group = io.StringIO(begun + piece, newline="").readlines()
            # A carriage return at the very end may be half of a line's end.
            begun = group.pop() if group and not group[-1].endswith("\n") else ""
            if len(begun) > LONGEST_LINE:
                reason = f"A line has more than {LONGEST_LINE:,} characters, so this is no list of rows."
                raise UnreadableFileError(reason, line=number + len(group))
            number += len(group)
            yield group
        if begun:
            self.open_end = not begun.endswith("\r")
            yield [begun]
        self.ended = True


def open_stream(stream: BinaryIO, *, encoding: str, limits: Limits) -> Text:
    """Unpack and decode. `encoding` is the merchant's, or ""; an XML file that names its own is believed next."""
    pieces = inflated(stream, limits)
    first = next(pieces, b"")
    declared = _DECLARED.search(first[:200])
    fallback = encoding_named(encoding) or (encoding_named(declared[1].decode()) if declared else "")
    return Text(text_of(chain((first,), pieces), fallback))
