"""Bytes that are nearly what a parser expects. Pure and seeded: the same seed and number give the same bytes."""

from __future__ import annotations

import copy
import gzip
import io
import random
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

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
    del data[at : at + rng.randrange(1, 2 + len(data) // 2)]


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


# What may stand in a document's place of something else: other types, bounds, texts that columns do not take.
ODD: Sequence[Any] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        154,
        1.5,
        10**30,
        -(10**30),
        1e-30,
        0.1 + 0.2,
        "",
        " ",
        "0",
        "-1",
        "154.00",
        "1e5",
        "1,5",
    ),
    *(
        "NaN",
        "\x00",
        "\ud800",
        "\u202e",
        "\u0663",
        "x" * 600,
        "wn_4417",
        "mch_999",
        "USD",
        "usd",
        "XXX",
        "2026-03-14T09:12:04Z",
    ),
    *(
        "2026-02-30T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-03-14",
        "24:00",
        "Default Title",
    ),
    *([], {}, [[]], [None], [{}], {"": None}, [1] * 50, {"id": {"id": {}}}, "6 x 75cl", "Magnum / Jeroboam"),
)


def mutated_document(document: Any, rng: random.Random) -> Any:
    """The document with one to four of its places changed: other values, keys gone, doubled or new, lists grown."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        document = _changed(copy.deepcopy(document), rng)
    return document


def _changed(node: Any, rng: random.Random) -> Any:
    if not isinstance(node, (dict, list)) or not node or rng.random() < 0.15:
        return rng.choice(ODD)
    place = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
    match rng.randrange(8):
        case 0:
            del node[place]
        case 1 if isinstance(node, dict):
            node[rng.choice(("id", "data", "price", "wine_id", "__proto__", "é", "x" * 300))] = rng.choice(ODD)
        case 1:
            node.insert(0, copy.deepcopy(node[place]))
        case _:
            node[place] = _changed(node[place], rng)
    return node


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
        archive.writestr(zipfile.ZipInfo("eurofxref.csv"), data, zipfile.ZIP_DEFLATED)  # whose date is always the same
    return buffer.getvalue()
