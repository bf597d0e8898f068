"""Which dead letters are of one kind: same subscription, type and error, and a reason that differs in particulars only.

Pure; imports no Django. Called when a letter is buried.
"""

from __future__ import annotations

import hashlib
import re

# What differs between two failures of one kind: what is quoted, ids of ours and of others, addresses, numbers.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|“[^”]*”")
_ID = re.compile(
    r"\b(?:[a-z]{2,4}_[0-9a-z_]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"\d[\d.,:]*")
LONGEST = 300


def normalised(reason: str) -> str:
    """The reason without its particulars: “price … not above … and at most …”."""
    text = _NUMBER.sub("…", _ID.sub("…", _QUOTED.sub("…", reason)))
    return " ".join(text.split())[:LONGEST]


def fingerprint(subscription: str, message_type: str, error_class: str, reason: str) -> str:
    """Sixteen hexadecimal digits; two kinds share one in a table of a million kinds once in forty million tables."""
    kind = "\x1f".join((subscription, message_type, error_class, normalised(reason)))
    return hashlib.sha256(kind.encode(errors="backslashreplace")).hexdigest()[:16]
