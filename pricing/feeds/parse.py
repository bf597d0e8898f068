"""Strict JSON: bytes in, a document of plain values out, or a FeedError. Pure.

Guarantee: whatever the bytes, it takes linear time and raises nothing but FeedError. Refused are: anything but
UTF-8, a byte order mark, duplicate keys, NaN and Infinity, nesting deeper than FEED_MAX_DEPTH, and text that
Postgres cannot store (NUL, lone surrogates). Numbers are kept as they were written: see Number.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from django.conf import settings

from pricing.feeds.errors import FeedError

BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# A string as a whole, or a bracket outside strings. An unterminated string counts to the end of the text, so that no
# character is looked at twice.
_NESTING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAY_BE_UNSTORABLE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number, as the digits that were sent: no float has rounded it, and no exponent has been expanded."""

    text: str


def parse(body: bytes) -> Any:
    """Read one JSON document. Objects are dicts, numbers are Number."""
    text = _decode(body)
    _refuse_depth(text)
    try:
        document = json.loads(
            text,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object_without_duplicates,
        )
    except json.JSONDecodeError as error:
        raise _invalid_json(f"{error.msg} at line {error.lineno}, column {error.colno}.") from None
    if _MAY_BE_UNSTORABLE.search(text):
        _refuse_unstorable(document)
    return document


def _decode(body: bytes) -> str:
    if body.startswith(BYTE_ORDER_MARKS):
        raise _invalid_encoding("The body starts with a byte order mark. Send UTF-8 without one.")
    if b"\x00" in body:
        raise _invalid_encoding("The body has NUL bytes, as UTF-16 and UTF-32 do. Send UTF-8.")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _invalid_encoding(f"The body is not UTF-8: byte {error.start} does not fit.") from None


def _refuse_depth(text: str) -> None:
    depth = 0
    for token in _NESTING.finditer(text):
        first = token.group()[0]
        if first in "[{":
            depth += 1
            if depth > settings.FEED_MAX_DEPTH:
                raise FeedError(400, "too_deep", f"The body nests deeper than {settings.FEED_MAX_DEPTH} levels.")
        elif first in "]}":
            depth -= 1


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise FeedError(400, "duplicate_key", "An object has one key twice.", field=_plain(twice))
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _invalid_json(f"{name} is not JSON.")


def _refuse_unstorable(document: Any) -> None:
    """Find the text that cannot be stored, and say where. Called only when an escape hints at some."""
    for path, text in _texts("", document):
        if _UNSTORABLE.search(text):
            raise FeedError(
                422, "forbidden_character", "NUL characters and lone surrogates cannot be stored.", field=path or None
            )


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every key and every string with the path to it; FEED_MAX_DEPTH bounds the recursion."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(f"{path}[{index}]", item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield path, name
            step = _plain(name) or "?"
            yield from _texts(f"{path}.{step}" if path else step, item)


def _plain(name: str) -> str | None:
    """A sender's key, when it is harmless to repeat."""
    return name if _PLAIN_NAME.fullmatch(name) else None


def _invalid_json(message: str) -> FeedError:
    return FeedError(400, "invalid_json", f"The body is not JSON: {message}")


def _invalid_encoding(message: str) -> FeedError:
    return FeedError(400, "invalid_encoding", message)
