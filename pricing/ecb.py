"""The euro reference rates as the European Central Bank publishes them. Pure: bytes in, rates out, or a RatesError.

https://www.ecb.europa.eu/stats/eurofxref/ has one format twice: `eurofxref.csv` (one day, “28 November 2025”, spaces
after the commas) and `eurofxref-hist.csv` (all days since 1999, “2025-11-28”, N/A where a currency had no rate), each
with a comma at the end of a line, and each also in a zip. Guarantee: a file is read whole, or the error names the line.
"""

from __future__ import annotations

import csv
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

LARGEST_FILE = 50_000_000  # bytes, unpacked; all days since 1999 are under 3,000,000
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY_IN_WORDS = re.compile(r"([0-9]{1,2}) ([A-Z][a-z]+) ([0-9]{4})")
_CURRENCY = re.compile(r"[A-Z]{3}")
_RATE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,8})?")
_NONE = frozenset({"N/A", ""})
# What is wrong with a zip's frame, and what each of its ways to pack says of damaged contents.
_BROKEN_ZIP = (
    *(zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError),
    *(zlib.error, lzma.LZMAError, OSError),
)


class RatesError(Exception):
    """The file cannot be taken; the message says which line and why, for whoever loads it."""


@dataclass(frozen=True, slots=True)
class Published:
    """On this day one euro was worth so much of this currency."""

    day: date
    currency: str
    per_eur: Decimal


def read(content: bytes, *, today: date) -> list[Published]:
    """All rates of a file, packed or not, the euro's own 1 of each day among them. Raises RatesError."""
    lines = csv.reader(io.StringIO(_text(content), newline=""), skipinitialspace=True)
    rates: list[Published] = []
    seen: set[date] = set()
    try:
        currencies = _currencies(next(lines, []))
        for row in lines:
            if not any(row):
                continue
            day = _day(row[0], lines.line_num, today)
            if day in seen:
                raise RatesError(f"line {lines.line_num}: {day} stands in the file twice.")
            seen.add(day)
            rates.append(Published(day, "EUR", Decimal(1)))
            rates += _rates(day, row[1:], currencies, lines.line_num)
    except csv.Error as error:
        raise RatesError(f"line {lines.line_num}: this is not CSV: {error}.") from None
    if not rates:
        raise RatesError("The file has no line with rates.")
    return rates


def _text(content: bytes) -> str:
    if content.startswith(b"PK"):
        content = _unpacked(content)
    if len(content) > LARGEST_FILE:
        raise RatesError(f"The file has more than {LARGEST_FILE:,} bytes, so it is something else.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RatesError(f"line {line}: this is not text in UTF-8.") from None


def _unpacked(content: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            inside = [each for each in packed.infolist() if each.filename.lower().endswith(".csv")]
            if len(inside) != 1:
                raise RatesError(f"The zip holds {len(inside)} CSV files; it should be one.")
            with packed.open(inside[0]) as file:
                return file.read(LARGEST_FILE + 1)
    except _BROKEN_ZIP as error:
        raise RatesError(f"The zip cannot be read: {error}.") from None


def _currencies(header: list[str]) -> list[str]:
    names = [name.strip() for name in header]
    if not names or names[0] != "Date":
        raise RatesError("line 1: the first column is not “Date”, so this is not the ECB's file.")
    currencies = names[1:-1] if names[-1] == "" else names[1:]
    for name in currencies:
        if not _CURRENCY.fullmatch(name) or name == "EUR" or currencies.count(name) > 1:
            raise RatesError(f"line 1: the column {name[:20]!r} is no other currency's code, or stands twice.")
    if "USD" not in currencies:
        raise RatesError("line 1: there is no column USD, without which nothing can be converted.")
    return currencies


def _rates(day: date, cells: list[str], currencies: list[str], line: int) -> Iterator[Published]:
    values = [cell.strip() for cell in cells]
    if len(values) < len(currencies) or any(values[len(currencies) :]):
        raise RatesError(f"line {line}: it has {len(values)} values for {len(currencies)} currencies.")
    for currency, value in zip(currencies, values, strict=False):
        if value in _NONE:
            continue
        rate = Decimal(value) if _RATE.fullmatch(value) else Decimal(0)
        if rate <= 0:
            raise RatesError(f"line {line}, {currency}: {value[:20]!r} is no rate.")
        yield Published(day, currency, rate)


def _day(text: str, line: int, today: date) -> date:
    words = _DAY_IN_WORDS.fullmatch(text.strip())
    try:
        if words:
            day = date(int(words[3]), _MONTHS.index(words[2]) + 1, int(words[1]))
        else:
            day = date.fromisoformat(text.strip() if _DAY.fullmatch(text.strip()) else "")
    except ValueError:
        message = f"line {line}: {text[:30]!r} is no day, such as 2025-11-28 or 28 November 2025."
        raise RatesError(message) from None
    if day > today + timedelta(days=1):
        raise RatesError(f"line {line}: {day} is still to come.")
    return day
