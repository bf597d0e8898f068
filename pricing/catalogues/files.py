"""A catalogue file's bytes: received in pieces, kept in Postgres so that any host can read them.

Guarantee: a file exists for the refresh only when all its bytes are committed; one that breaks off while it is
received leaves nothing that is ever read. No transaction is open while a sender is waited for. Called by the ways in
(view, admin, command) and by the refresh.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import BinaryIO

import structlog
from django.conf import settings
from django.db import transaction

from jobs.database import run
from jobs.messages import NewMessage
from jobs.outbox import publish
from pricing.events import REFRESH_CATALOGUE
from pricing.models import CatalogueFile, CataloguePiece, CatalogueSettings, Merchant

log = structlog.get_logger(__name__)
Status = CatalogueFile.Status
# Bytes go as they are. Django's own INSERT has them in its text, of twice the length, which both sides spell out.
KEEP = "INSERT INTO pricing_cataloguepiece (file_id, number, data) VALUES (%(file)s, %(number)s, %(data)s)"


class FileTooLargeError(Exception):
    """It has more bytes than CATALOGUE_MAX_BYTES; the message says how many are taken."""

    def __init__(self) -> None:
        super().__init__(f"A file has at most {settings.CATALOGUE_MAX_BYTES:,} bytes. Pack it with gzip.")


def receive(
    *, merchant: Merchant, name: str, data: Iterable[bytes], as_of: datetime, send: bool, by: str, now: datetime
) -> CatalogueFile:
    """Keep a file, and with `send` have a worker take it. Raises FileTooLargeError, and what reading `data` raises.

    `as_of` is the time of which the prices are, `by` whoever brought it. Each piece commits by itself.
    """
    file = CatalogueFile.objects.create(merchant=merchant, name=name[-200:], as_of=as_of, received_at=now)
    digest, size = hashlib.sha256(), 0
    try:
        for number, piece in enumerate(_pieces(data)):
            size = _within_limit(size + len(piece))
            digest.update(piece)
            run(KEEP, {"file": file.pk, "number": number, "data": piece})
    except Exception:
        file.delete()
        raise
    CatalogueSettings.objects.get_or_create(merchant=merchant)
    file.sha256, file.bytes, file.status, file.queued = digest.hexdigest(), size, Status.UPLOADED, send
    with transaction.atomic():
        file.save(update_fields=["sha256", "bytes", "status", "queued"])
        if send:
            publish([command(file)])
    log.info("catalogue.received", file=file.pk, merchant_id=merchant.pk, bytes=size, by=by)
    return file


def command(file: CatalogueFile) -> NewMessage:
    """The instruction to take the file, or to go on with it."""
    return NewMessage(REFRESH_CATALOGUE, file.merchant_id, {"file_id": file.pk})


def open_file(file: CatalogueFile) -> BinaryIO:
    """The file's bytes from their beginning, of which one piece is in memory."""
    return io.BufferedReader(_Pieces(file.pk), buffer_size=settings.CATALOGUE_PIECE_BYTES)


def _within_limit(size: int) -> int:
    if size > settings.CATALOGUE_MAX_BYTES:
        raise FileTooLargeError
    return size


def _pieces(data: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of one size."""
    buffer = bytearray()
    for some in data:
        buffer += some
        while len(buffer) >= settings.CATALOGUE_PIECE_BYTES:
            yield bytes(buffer[: settings.CATALOGUE_PIECE_BYTES])
            del buffer[: settings.CATALOGUE_PIECE_BYTES]
    if buffer:
        yield bytes(buffer)


class _Pieces(io.RawIOBase):
    """Reads one piece after the other."""

    def __init__(self, file_id: int) -> None:
        self._file_id = file_id
        self._number = 0
        self._piece = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._piece:
            found = CataloguePiece.objects.filter(file_id=self._file_id, number=self._number)
            data = found.values_list("data", flat=True).first()
            if data is None:
                return 0
            self._piece = memoryview(data)
            self._number += 1
        count = min(len(buffer), len(self._piece))
        buffer[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count
