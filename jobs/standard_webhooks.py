"""Standard Webhooks: is this request signed by who has one of these secrets, and just now? Pure; imports no models.

https://www.standardwebhooks.com: the text `id.timestamp.body` under HMAC-SHA256, in base64 behind `v1,`; several of
them with spaces between while the sender changes its secret. Guarantee: whatever the headers hold, it takes linear
time and raises only the two errors below.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

MARK = "whsec_"
SCHEME = "v1"
MOST_SIGNATURES = 10  # a sender in the middle of a rotation sends two
SHORTEST_SECRET, LONGEST_SECRET = 24, 64  # bytes, as the standard has it
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


class TimestampError(Exception):
    """The timestamp is none, or too far from our clock."""


class SignatureError(Exception):
    """No signature in the list is that of a secret we know."""


@dataclass(frozen=True, slots=True)
class Signed:
    """What a signed request says about itself, as its headers have it."""

    id: str
    timestamp: str
    signatures: str


def check_timestamp(signed: Signed, *, now: datetime, tolerance: timedelta) -> None:
    """Raise TimestampError unless the request was signed at most `tolerance` ago, or ahead of our clock."""
    if not _TIMESTAMP.fullmatch(signed.timestamp):
        raise TimestampError
    if abs(now.timestamp() - int(signed.timestamp)) > tolerance.total_seconds():
        raise TimestampError


def check_signature(signed: Signed, body: bytes, *, secrets: Iterable[bytes]) -> None:
    """Raise SignatureError unless one of the signatures was made with one of the secrets over these very bytes."""
    given = signed.signatures.split(" ")
    if len(given) > MOST_SIGNATURES:
        raise SignatureError
    _one_is_right(given, [sign(secret, signed, body) for secret in secrets])


def check_body_signature(signature: str, body: bytes, *, secrets: Iterable[bytes]) -> None:
    """The simpler way of Shopify and WooCommerce: one signature, over the body alone, and in base64."""
    _one_is_right([signature], [_base64_hmac(secret, body) for secret in secrets])


def _one_is_right(given: Iterable[str], right: Iterable[str]) -> None:
    # Bytes, not text: compare_digest refuses text beyond ASCII, and whatever is sent must only be wrong.
    theirs = [signature.encode(errors="replace") for signature in given]
    ours = [signature.encode() for signature in right]
    # All are compared, so that time does not say which of them was right.
    if not sum(hmac.compare_digest(mine, other) for mine in ours for other in theirs):
        raise SignatureError


def _base64_hmac(secret: bytes, content: bytes) -> str:
    return base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest()).decode("ascii")


def sign(secret: bytes, signed: Signed, body: bytes) -> str:
    """The one signature that `secret` gives this request: `v1,` and 44 letters of base64."""
    content = f"{signed.id}.{signed.timestamp}.".encode(errors="replace") + body
    return f"{SCHEME},{_base64_hmac(secret, content)}"


def read_secret(text: str) -> bytes:
    """The bytes of a `whsec_…` secret. Raises ValueError, in words for whoever typed it."""
    if not text.startswith(MARK):
        raise ValueError(f"A signing secret starts with {MARK}.")
    try:
        secret = base64.b64decode(text.removeprefix(MARK), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"What follows {MARK} is not base64.") from None
    if not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET:
        raise ValueError(f"A signing secret has {SHORTEST_SECRET} to {LONGEST_SECRET} bytes, this one {len(secret)}.")
    return secret


def write_secret(secret: bytes) -> str:
    return MARK + base64.b64encode(secret).decode("ascii")
