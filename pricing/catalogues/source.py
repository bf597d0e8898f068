"""From a kept file to numbered rows, and from a row to what it asks: the readers as the refresh uses them.

Guarantee: the same file gives the same rows under the same numbers, whenever and wherever it is read again, because
what decides about that (the merchant's settings, the file's own time) was kept with it. Called by the refresh.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from pricing.catalogues.errors import UnclearNumbersError, UnreadableFileError
from pricing.catalogues.files import open_file
from pricing.catalogues.interpret import interpret
from pricing.catalogues.numbers import NumberColumn, NumberStyle
from pricing.catalogues.options import FileSettings, Limits
from pricing.catalogues.reading import open_catalogue
from pricing.catalogues.rows import Raw, Rejected
from pricing.catalogues.stage import Numbered
from pricing.matching import Ask
from pricing.models import CatalogueFile, CatalogueSettings

# Raised when what the readers or `interpret` make of a row changes: then nothing counts as said before.
READING_VERSION = 1
LONGEST_NAME = 500  # of a listing, letters spelt out


class RefusedError(Exception):
    """Nothing of the file is taken; the message says why, and what to do."""


def limits() -> Limits:
    return Limits(
        text_bytes=settings.CATALOGUE_MAX_TEXT_BYTES,
        inflation=settings.CATALOGUE_MAX_INFLATION,
        rows=settings.CATALOGUE_MAX_ROWS,
    )


def file_settings(kept: CatalogueSettings) -> FileSettings:
    """As the readers want them. Raises ValueError, which names the field."""
    merchant = kept.merchant
    return FileSettings(
        format=kept.format,
        currency=kept.currency or merchant.currency,
        decimal_sign=kept.decimal_sign,
        delimiter=kept.delimiter,
        encoding=kept.encoding,
        unit=kept.unit,
        tax=kept.tax,
        columns=kept.columns,
        unsaid_size_ml=merchant.unsaid_size_ml,
        open_end=kept.open_end,
    )


def freeze(kept: CatalogueSettings) -> dict[str, Any]:
    """All that decides about a file, as it was when the file was first read. Raises RefusedError."""
    try:
        how = asdict(file_settings(kept))
    except ValueError as error:
        raise RefusedError(f"The merchant's settings for files cannot be: {error}.") from None
    return {
        "file": {**how, "columns": dict(how["columns"])},
        "absent": kept.absent,
        "smallest_share": kept.smallest_share,
        "take_broken": kept.take_broken,
    }


@dataclass(frozen=True, slots=True)
class How:
    """How a file's rows are understood."""

    settings: FileSettings
    style: NumberStyle

    @classmethod
    def of(cls, file: CatalogueFile) -> How:
        assert file.settings is not None  # it has been read
        assert file.style is not None
        return cls(FileSettings(**file.settings["file"]), NumberStyle(**file.style))

    def interpret(self, raw: Raw, as_of: datetime) -> Ask | Rejected:
        meant = interpret(raw, self.settings, self.style, as_of)
        if isinstance(meant, Ask) and len(meant.listed.name) > LONGEST_NAME:
            return Rejected(
                raw.line, "title", f"Spelt out, the name has more than {LONGEST_NAME} letters.", raw.source_id
            )
        return meant

    def fingerprint(self) -> int:
        """A number that is another one whenever a row may be understood in another way."""
        how = json.dumps([READING_VERSION, asdict(self.settings), asdict(self.style)], sort_keys=True, default=dict)
        return int.from_bytes(hashlib.sha256(how.encode()).digest()[:8], "big", signed=True)


class Reader:
    """Reads one file once. What it has met is counted as it goes; `remarks` holds the first rows it could not read."""

    def __init__(self, file: CatalogueFile) -> None:
        assert file.settings is not None  # frozen before
        self.settings = FileSettings(**file.settings["file"])
        self.rows = self.unread = self.nameless = 0
        self.remarks: list[Rejected] = []
        self.broken = ""
        self._file = file
        self._take_broken: bool = file.settings["take_broken"]
        self._numbers = NumberColumn()

    def portions(self, size: int) -> Iterator[list[Numbered]]:
        """The rows with their numbers, so many at a time. Raises RefusedError."""
        portion: list[Numbered] = []
        try:
            catalogue = open_catalogue(
                open_file(self._file),
                name=self._file.name,
                settings=self.settings,
                limits=limits(),
                now=self._file.as_of,
            )
            for row in catalogue.rows:
                if isinstance(row, Rejected):
                    portion += self._set_aside(row)
                else:
                    self.rows += 1
                    portion.append((self.rows, row))
                if len(portion) >= size:
                    yield self._fed(portion)
                    portion = []
        except UnreadableFileError as fault:
            if not (self._take_broken and self.rows):
                raise RefusedError(f"{fault} Nothing of the file was taken.") from None
            self.broken = f"{fault} The rows before it were taken."
        if portion:
            yield self._fed(portion)

    def finish(self) -> How:
        """How the rows are to be understood, now that all have been seen. Raises RefusedError."""
        if not self.rows:
            raise RefusedError("It has no row that can be read. Nothing was taken.")
        if self.settings.decimal_sign:
            return How(self.settings, NumberStyle.of_setting(self.settings.decimal_sign))
        try:
            return How(self.settings, self._numbers.style())
        except UnclearNumbersError as error:
            cells = ", ".join(error.cells[:5])
            raise RefusedError(f"{error} For example: {cells}. Nothing was taken.") from None

    def _fed(self, portion: list[Numbered]) -> list[Numbered]:
        self._numbers.feed(row.price for n, row in portion if n is not None)
        return portion

    def _set_aside(self, row: Rejected) -> list[Numbered]:
        self.unread += 1
        if len(self.remarks) < settings.CATALOGUE_REMARKS:
            self.remarks.append(row)
        if row.source_id:
            return [(None, Raw(row.line, row.source_id, ""))]
        self.nameless += 1
        return []
