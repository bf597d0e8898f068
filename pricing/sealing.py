"""Secrets that we must be able to read again, encrypted for the database. Pure of the database.

Guarantee: whoever has the database but not SECRET_KEY reads nothing, and a text that was changed is refused, not
misread. SECRET_KEY may be replaced: what SECRET_KEY_FALLBACKS still names can be read. Used by signing.py.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

# Makes this key another one than whatever else is derived from SECRET_KEY. Never to be changed.
PURPOSE = b"winecellar: sealed signing secrets, 1"


class UnreadableError(Exception):
    """The text was not sealed with a SECRET_KEY that we have, or was changed since."""


def seal(secret: bytes) -> str:
    return _box().encrypt(secret).decode("ascii")


def unseal(sealed: str) -> bytes:
    """Raises UnreadableError."""
    try:
        return _box().decrypt(sealed)
    except InvalidToken:
        raise UnreadableError from None


def reseal(sealed: str) -> str:
    """The same secret, sealed with today's SECRET_KEY. Raises UnreadableError."""
    try:
        return _box().rotate(sealed).decode("ascii")
    except InvalidToken:
        raise UnreadableError from None


def _box() -> MultiFernet:
    """Seals with the first key, reads with any."""
    return MultiFernet([Fernet(key) for key in _keys()])


def _keys() -> Iterator[bytes]:
    for secret_key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        # SECRET_KEY is long and random, so deriving needs no slowness, only separation.
        derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(secret_key.encode())
        yield base64.urlsafe_b64encode(derived)
