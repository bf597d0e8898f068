"""How fast catalogue files are read, beside the bare parser that each reader stands on.

python -m tests.benchmarks.reading            a million rows of twelve columns, and as many products
python -m tests.benchmarks.reading --rows N
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import resource
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from multiprocessing import get_context
from xml.parsers import expat

from pricing.catalogues.numbers import NumberColumn
from pricing.catalogues.options import FileSettings, Limits
from pricing.catalogues.reading import open_catalogue
from pricing.catalogues.rows import Raw

NOW = datetime(2030, 5, 17, tzinfo=UTC)
LIMITS = Limits(text_bytes=10**10, inflation=1_000, rows=10**8)
BLOCK = 1_000
CSV_HEAD = "sku,name,size,vintage,gtin,lwin,price,currency,availability,url,region,colour\n"
XML_HEAD = '<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"><channel><title>Shop</title>\n'
XML_TAIL = "</channel></rss>\n"


def csv_row(number: int) -> str:
    return (
        f'SKU-{number:07d},"Château Exemple, Cuvée {number % 4999}",75cl,{1990 + number % 30},{number:013d},'
        f"{number % 10**7:07d},{5 + number % 900}.{number % 100:02d},EUR,in stock,https://shop.example/wine/{number},"
        "Bordeaux,red\n"
    )


def xml_product(number: int) -> str:
    return (
        f"<item>\n<g:id>SKU-{number:07d}</g:id>\n<title>Château Exemple {number % 4999} {1990 + number % 30}</title>\n"
        f"<link>https://shop.example/wine/{number}</link>\n<description>A wine of some depth and a long finish, and a"
        f" text that nobody reads.</description>\n<g:price>{5 + number % 900}.{number % 100:02d} EUR</g:price>\n"
        f"<g:availability>in stock</g:availability>\n<g:gtin>{number:013d}</g:gtin>\n<g:size>75cl</g:size>\n"
        "<g:shipping><g:country>DE</g:country><g:price>4.90 EUR</g:price></g:shipping>\n</item>\n"
    )


class Made(io.RawIOBase):
    """A file that is written while it is read, so that it needs no room anywhere."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self.pieces, self.rest = pieces, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self.rest:
            self.rest = next(self.pieces, "").encode()
        taken, self.rest = (self.rest, b"") if size < 0 else (self.rest[:size], self.rest[size:])
        return taken


def pieces_of(kind: str, rows: int) -> Iterator[str]:
    head, row, tail = (CSV_HEAD, csv_row, "") if kind == "csv" else (XML_HEAD, xml_product, XML_TAIL)
    yield head
    for first in range(0, rows, BLOCK):
        yield "".join(map(row, range(first, min(first + BLOCK, rows))))
    yield tail or "\n"


def ours(stream: io.RawIOBase, *, numbers: bool = False) -> int:
    count, column, prices = 0, NumberColumn(), []
    for row in open_catalogue(stream, name="", settings=FileSettings(), limits=LIMITS, now=NOW).rows:  # type: ignore[arg-type]
        count += 1
        if numbers and isinstance(row, Raw):
            prices.append(row.price)
            if len(prices) == BLOCK:
                column.feed(prices)
                prices.clear()
    if numbers:
        column.feed(prices)
        column.style()
    return count


def bare_csv(stream: io.RawIOBase) -> int:
    return sum(1 for _ in csv.reader(io.TextIOWrapper(stream, "utf-8", newline=""))) - 2  # type: ignore[arg-type]


def bare_expat(stream: io.RawIOBase) -> int:
    """With the handlers that any reader needs, which do nothing but count."""
    count = 0
    parser = expat.ParserCreate("utf-8", " ")
    parser.buffer_text = True

    def ends(name: str) -> None:
        nonlocal count
        count += name == "item"

    parser.StartElementHandler = lambda name, attributes: None
    parser.CharacterDataHandler = lambda data: None
    parser.EndElementHandler = ends
    while data := stream.read(1 << 16):
        parser.Parse(data, False)
    parser.Parse(b"", True)
    return count


def write_only(stream: io.RawIOBase) -> int:
    while stream.read(1 << 18):
        pass
    return 0


READERS: dict[str, tuple[str, Callable[[io.RawIOBase], int]]] = {
    "making the text (taken off below)": ("csv", write_only),
    "python's csv alone": ("csv", bare_csv),
    "delimited": ("csv", ours),
    "delimited, with the style of its numbers": ("csv", lambda stream: ours(stream, numbers=True)),
    "making the XML (taken off below)": ("xml", write_only),
    "expat alone, with empty handlers": ("xml", bare_expat),
    "Google's XML": ("xml", ours),
}


def measure(name: str, rows: int) -> tuple[float, int]:
    """Seconds of CPU, and the peak of memory in MB, in a process of its own."""
    kind, reader = READERS[name]
    began = time.process_time()
    count = reader(Made(pieces_of(kind, rows)))
    took = time.process_time() - began
    assert count in (0, rows), (name, count)
    return took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.reading", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    packed = len(gzip.compress("".join(map(csv_row, range(BLOCK))).encode())) / BLOCK
    print(f"{rows:,} rows; a row of text is {packed:.0f} bytes when packed. Rates are rows per second of one core.\n")
    made = {"csv": 0.0, "xml": 0.0}
    for name, (kind, reader) in READERS.items():
        with get_context("spawn").Pool(1) as pool:
            took, megabytes = pool.apply(measure, (name, rows))
        if reader is write_only:
            made[kind] = took
        took -= 0 if reader is write_only else made[kind]
        print(f"{name:42} {rows / took:>10,.0f}/s  {megabytes:>4} MB")


if __name__ == "__main__":
    main()
