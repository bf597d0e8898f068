"""A file's bytes, unpacked if it is gzip, which its first bytes say and not its name. Pure; used by stream.py.

Guarantee: memory does not grow with the file, and no more is unpacked than the limits allow; a gzip file that was cut
off, damaged or continued with something else never ends as if it were whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.options import Limits

PIECE = 1 << 18
GZIP = b"\x1f\x8b"
GZIP_WINDOW = 31  # zlib's way to ask for a gzip header, and its check sum at the end
RATIO_FROM = 10_000_000  # what is unpacked before its ratio counts: a short file may repeat itself
# What is no catalogue, known by its beginning.
OTHERS = {
    b"PK\x03\x04": "This is a zip archive or a workbook. Save it as CSV, or pack it with gzip.",
    b"\xd0\xcf\x11\xe0": "This is a workbook of an old Excel. Save it as CSV.",
    b"%PDF": "This is a PDF. We need a file of rows and columns, such as CSV.",
    b"BZh": "This is packed with bzip2. Pack it with gzip, or send it as it is.",
    b"\xfd7zXZ": "This is packed with xz. Pack it with gzip, or send it as it is.",
    b"\x28\xb5\x2f\xfd": "This is packed with zstd. Pack it with gzip, or send it as it is.",
}


def inflated(stream: BinaryIO, limits: Limits) -> Iterator[bytes]:
    """The pieces of the file, none of them empty. Raises UnreadableFileError."""
    first = stream.read(PIECE)
    while len(first) < max(map(len, OTHERS)) and (more := stream.read(PIECE)):
        first += more
    for magic, reason in OTHERS.items():
        if first.startswith(magic):
            raise UnreadableFileError(reason)
    pieces = _unpacked(first, stream, limits) if first.startswith(GZIP) else _plain(first, stream)
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limits.text_bytes:
            raise UnreadableFileError(f"It has more than {limits.text_bytes:,} bytes. Send it in parts.")
        yield piece


def _plain(piece: bytes, stream: BinaryIO) -> Iterator[bytes]:
    while piece:
        yield piece
        piece = stream.read(PIECE)


def _unpacked(packed: bytes, stream: BinaryIO, limits: Limits) -> Iterator[bytes]:
    """Each member of the file after the other: programs that pack in parallel write several."""
    member = zlib.decompressobj(GZIP_WINDOW)
    taken, given = len(packed), 0
    while packed:
        try:
            piece = member.decompress(packed, PIECE)
        except zlib.error as error:
            raise UnreadableFileError("The gzip data is damaged. Send the file again.") from error
        given += len(piece)
        if given > RATIO_FROM and given > taken * limits.inflation:
            raise UnreadableFileError(f"It unpacks to more than {limits.inflation} times its size. Send it unpacked.")
        if piece:
            yield piece
        packed = member.unconsumed_tail
        if member.eof:
            packed = member.unused_data.lstrip(b"\0")  # tapes are filled up with zeros, and so are some files
            while not packed and (more := stream.read(PIECE)):
                taken += len(more)
                packed = more.lstrip(b"\0")
            if not packed:
                return
            if len(packed) < len(GZIP):
                packed += stream.read(PIECE)
            if not packed.startswith(GZIP):
                raise UnreadableFileError("Something follows the end of the gzip data. Send the file again.")
            member = zlib.decompressobj(GZIP_WINDOW)
        elif not packed:
            packed = stream.read(PIECE)
            taken += len(packed)
    raise UnreadableFileError("The gzip data ends too early: the file was cut off. Send it again.")
