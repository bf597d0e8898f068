"""Times and spans in words, for operators' pages, mails and logs. Pure; imports no Django."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def utc(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def span(time: timedelta) -> str:
    """Two units at most: “26 h 10 min”, “3 d 4 h”, “40 s”; below a second in milliseconds."""
    seconds = int(time.total_seconds())
    if seconds < 1:
        return f"{max(time / timedelta(milliseconds=1), 0):.0f} ms"
    for index, (unit, size) in enumerate(UNITS):
        if seconds >= size * (2 if unit == "d" else 1):
            lesser, lesser_size = UNITS[min(index + 1, len(UNITS) - 1)]
            rest = seconds % size // lesser_size
            return f"{seconds // size} {unit}" + (f" {rest} {lesser}" if rest else "")
    raise AssertionError("a second ends it")
