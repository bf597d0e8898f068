"""What is known of a merchant's catalogue files before they are read, and how much of one is read. Pure.

Whoever stores these settings makes a FileSettings of them; what it cannot mean is a ValueError that names the field.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from pricing.contract import CURRENCIES

DELIMITERS = (",", ";", "\t", "|")
DECIMAL_SIGNS = (".", ",")
# One byte is one character in each, and ASCII is the same in all: a file's beginning is read alike with any of them.
ENCODINGS = (
    *("cp1252", "iso8859-1", "iso8859-15", "cp1250", "iso8859-2", "cp1251", "cp1253", "cp1254", "iso8859-9"),
    *("cp437", "cp850", "mac-roman"),
)


class Format(StrEnum):
    DELIMITED = "delimited"
    GOOGLE_XML = "google-xml"
    GOOGLE_TEXT = "google-text"
    WINE_SEARCHER_XML = "wine-searcher-xml"
    WINE_SEARCHER_TEXT = "wine-searcher-text"
    VIVINO_XML = "vivino-xml"


class Unit(StrEnum):
    CURRENCY = "currency"
    CENTS = "cents"


class Tax(StrEnum):
    """Whether a file's prices have value added tax in them."""

    UNSAID = ""
    INCLUDED = "included"
    EXCLUDED = "excluded"


class Field(StrEnum):
    """What a column can be. Those that are not in Raw are put together by the readers."""

    SOURCE_ID = "source_id"
    TITLE = "title"
    SIZE = "size"
    VINTAGE = "vintage"
    GTIN = "gtin"
    LWIN = "lwin"
    WINE_ID = "wine_id"
    PRICE = "price"
    CURRENCY = "currency"
    AVAILABILITY = "availability"
    URL = "url"
    PRODUCER = "producer"
    PACK = "pack"
    SALE_PRICE = "sale_price"
    SALE_DATES = "sale_dates"


NO_COLUMNS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class FileSettings:
    """One merchant's files. "" and None leave a thing to be found out, or refused where it cannot be."""

    format: str = ""  # one of Format
    currency: str = ""  # of the prices that come without one
    decimal_sign: str = ""
    delimiter: str = ""
    encoding: str = ""  # of the files that are not UTF-8
    unit: str = Unit.CURRENCY
    tax: str = Tax.UNSAID
    columns: Mapping[str, str] = field(default_factory=lambda: NO_COLUMNS)  # a Field to the name of its column
    unsaid_size_ml: int | None = None  # the bottle of a row that names none
    open_end: bool = False  # its files end without a line end, so that a missing one says nothing

    def __post_init__(self) -> None:
        allowed: tuple[tuple[str, str, frozenset[str] | set[str]], ...] = (
            ("format", self.format, {"", *Format}),
            ("currency", self.currency, {"", *CURRENCIES}),
            ("decimal_sign", self.decimal_sign, {"", *DECIMAL_SIGNS}),
            ("delimiter", self.delimiter, {"", *DELIMITERS}),
            ("encoding", self.encoding and (encoding_named(self.encoding) or self.encoding), {"", *ENCODINGS}),
            ("unit", self.unit, set(Unit)),
            ("tax", self.tax, set(Tax)),
        )
        for name, value, values in allowed:
            if value not in values:
                raise ValueError(f"{name}: {getattr(self, name)!r} is none of {', '.join(sorted(values - {''}))}")
        if unknown := set(self.columns) - set(Field):
            raise ValueError(f"columns: there is no field {', '.join(sorted(unknown))}")
        if self.unsaid_size_ml is not None and self.unsaid_size_ml < 1:
            raise ValueError("unsaid_size_ml: a bottle holds at least 1 ml")


def encoding_named(name: str) -> str:
    """The name in ENCODINGS of an encoding, or "" if it is none of these."""
    try:
        known = codecs.lookup(name).name
    except LookupError:
        return ""
    return known if known in ENCODINGS else ""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a file is read at most. The numbers stand in the site's settings."""

    text_bytes: int  # unpacked
    inflation: int  # how many times its packed size a file may have
    rows: int
