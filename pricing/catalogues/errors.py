"""Why a catalogue file, and not only one of its rows, cannot be taken. Pure; raised by the readers."""

from __future__ import annotations

from collections.abc import Sequence


class UnreadableFileError(Exception):
    """The file cannot be read from `line` on; None: it is not about a line. `reason` is for the merchant.

    Whatever was read before may be part of a file that was cut off, or of one that is not what it seems.
    """

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"Line {line}: {reason}")
        self.reason = reason
        self.line = line


class UnclearNumbersError(Exception):
    """The prices of a file can be read in two ways, or in none. `cells` are examples; the message says what to set."""

    def __init__(self, reason: str, *, cells: Sequence[str]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cells = tuple(cells)
