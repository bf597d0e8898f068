"""Reading a file in a test: its bytes in, its rows out, and the fault that ended them."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.options import FileSettings, Limits
from pricing.catalogues.reading import open_catalogue
from pricing.catalogues.rows import Raw, Rejected

NOW = datetime(2030, 5, 17, 9, 30, tzinfo=UTC)
LIMITS = Limits(text_bytes=50_000_000, inflation=200, rows=100_000)


@dataclass
class Taken:
    """What a file gave before it ended."""

    format: str = ""
    rows: list[Raw | Rejected] = field(default_factory=list)
    fault: UnreadableFileError | None = None

    @property
    def raw(self) -> list[Raw]:
        return [row for row in self.rows if isinstance(row, Raw)]

    @property
    def rejected(self) -> list[Rejected]:
        return [row for row in self.rows if isinstance(row, Rejected)]


class Trickle(io.RawIOBase):
    """A stream that gives at most so many bytes at a time, as sockets do."""

    def __init__(self, data: bytes, at_most: int) -> None:
        self.data, self.at_most = io.BytesIO(data), at_most

    def read(self, size: int = -1) -> bytes:
        return self.data.read(min(size, self.at_most) if size >= 0 else self.at_most)


def take(data: bytes | str, *, name: str = "", limits: Limits = LIMITS, at_most: int = 1 << 20, **settings) -> Taken:
    """Read a file to its end or its fault."""
    taken = Taken()
    data = data.encode() if isinstance(data, str) else data
    try:
        catalogue = open_catalogue(
            Trickle(data, at_most), name=name, settings=FileSettings(**settings), limits=limits, now=NOW
        )
        taken.format = catalogue.format
        for row in catalogue.rows:
            taken.rows.append(row)
    except UnreadableFileError as fault:
        taken.fault = fault
    return taken


def whole(data: bytes | str, **settings) -> list[Raw]:
    """The rows of a file in which nothing is wrong."""
    taken = take(data, **settings)
    assert taken.fault is None, taken.fault
    assert taken.rejected == []
    return taken.raw
