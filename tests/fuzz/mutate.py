"""Bytes that are nearly what a parser expects. Pure and seeded: the same seed and number give the same bytes."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from collections.abc import Callable, Sequence

# What parsers trip over: ends and bounds of numbers, encodings, quotes, entities, line ends, bombs' beginnings.
TOKENS: Sequence[bytes] = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", "\u2028".encode(), "\u0130".encode()),
    *(b"{", b"}", b"[", b"]" * 40, b"[" * 40, b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b",", b";", b"\t", b"|"),
    *(b"\r", b"\n", b"\r\n", b"\n\n", b'""', b'"\n', b" ", "\u00a0".encode(), "\u202f".encode(), "\u066b".encode()),
    *(
        b"0",
        b"-0",
        b"1e999",
        b"-1",
        b"1e-999",
        b"NaN",
        b"Infinity",
        b"9" * 40,
        b"0.1" + b"0" * 60,
        b"1,000.00",
        b"1.000,00",
    ),
    *(
        b"null",
        b"true",
        b"<!DOCTYPE x>",
        b"<![CDATA[",
        b"]]>",
        b"<!--",
        b"&#0;",
        b"&#x110000;",
        b"&lt;",
        b"&x;",
        b"<a>",
        b"</a>",
    ),
    *(
        b"2026-02-30",
        b"0001-01-01T00:00:00Z",
        b"9999-12-31T23:59:60+99:99",
        b"24:00",
        b"6 x 75cl",
        b"Magnum",
        b"\xe2\x82\xac",
    ),
    *("٣".encode(), "½".encode(), "²".encode(), "İ".encode(), "ﬀ".encode(), b"a" * 600),
)
LONGEST = 20_000


def _flip(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _put(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(TOKENS)


def _replace(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    data[at : at + rng.randrange(1, 9)] = rng.choice(TOKENS)


def _cut(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randrange(1, 1 + len(data) // 2)]


def _end(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _repeat(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    piece = data[at : at + rng.randrange(1, 60)]
    data[at:at] = piece * rng.randrange(1, 30)


def _swap(data: bytearray, rng: random.Random) -> None:
    one, other = (rng.randrange(len(data)) for _ in range(2))
    piece = data[one : one + 12]
    data[one : one + 12] = data[other : other + 12]
    data[other : other + 12] = piece


STEPS: Sequence[Callable[[bytearray, random.Random], None]] = (
    _flip,
    _put,
    _put,
    _replace,
    _replace,
    _cut,
    _end,
    _repeat,
    _swap,
)


def mutated(seeds: Sequence[bytes], rng: random.Random) -> bytes:
    """One of the seeds, changed once or some times."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 2, 3, 5, 9))):
        if not data:
            data = bytearray(rng.choice(TOKENS))
        rng.choice(STEPS)(data, rng)
    return bytes(data[:LONGEST])


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("eurofxref.csv", data)
    return buffer.getvalue()
