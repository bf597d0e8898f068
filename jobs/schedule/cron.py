"""Slots: the times at which a job is to run, in UTC, by croniter. Pure; imports no Django.

Only the plain subset of cron is let in. What croniter also takes (seconds and years, @aliases, `l`, `w`, `#`, hashes,
random values, day of month OR day of week, ranges that wrap) has surprised somebody before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from croniter import CroniterError, croniter

FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 6))
_ITEM = re.compile(r"(?:(\*)|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", re.ASCII)
_EVERY_MONTH_HAS = 28
_STEPPED = {"minute", "hour"}  # a step elsewhere, or one that does not divide, is shorter at each turn of the field


class BadCronError(ValueError):
    """The expression is not in our subset; the message says which part, and why."""


def check(expression: str) -> None:
    """Raise BadCronError unless the expression means on every day what it seems to mean."""
    fields = expression.split(" ")
    if len(fields) != len(FIELDS):
        raise BadCronError(f"{expression!r}: five fields with one space between, in UTC; not {len(fields)}")
    values = [_values(text, *field) for text, field in zip(fields, FIELDS, strict=True)]
    _minute, _hour, day, month, weekday = fields
    if day != "*" and weekday != "*":
        raise BadCronError(f"{expression!r}: day of month and day of week together mean “either”; use one of them")
    if day != "*" and month == "*" and max(values[2]) > _EVERY_MONTH_HAS:
        raise BadCronError(f"{expression!r}: not every month has a day {max(values[2])}; name the months, or use 28")
    try:
        croniter.expand(expression, strict=True)
    except CroniterError as error:
        raise BadCronError(f"{expression!r}: {error}") from None


def _values(text: str, name: str, low: int, high: int) -> list[int]:
    values: list[int] = []
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if not match:
            raise BadCronError(f"{name} {item!r}: only numbers, *, ranges a-b, lists and steps /n")
        star, first, last, step = match.groups()
        begin, end = (low, high) if star else (int(first), int(last or first))
        if not low <= begin <= end <= high:
            raise BadCronError(f"{name} {item!r}: must rise within {low} to {high}")
        if step is not None and not (
            star and name in _STEPPED and 1 < int(step) <= high and (high + 1) % int(step) == 0
        ):
            raise BadCronError(f"{name} {item!r}: a step goes with * in minutes and hours, and divides 60 or 24")
        values += range(begin, end + 1, int(step or 1))
    if len(values) != len(set(values)):
        raise BadCronError(f"{name} {text!r}: names a value twice")
    return values


def slots_after(expression: str, after: datetime) -> Iterator[datetime]:
    """The slots later than `after`, ascending, without end."""
    times = croniter(expression, after.astimezone(UTC), ret_type=datetime)
    while True:
        yield times.get_next()


def next_slot(expression: str, after: datetime) -> datetime:
    """The first slot later than `after`."""
    return next(slots_after(expression, after))


def latest_slot(expression: str, until: datetime, *, back: int = 0) -> datetime:
    """The last slot not later than `until`, or the one `back` slots before it."""
    times = croniter(expression, until.astimezone(UTC) + timedelta(microseconds=1), ret_type=datetime)
    slot: datetime = times.get_prev()
    for _ in range(back):
        slot = times.get_prev()
    return slot


def slots_between(expression: str, first: datetime, last: datetime) -> Iterator[datetime]:
    """The slots from `first` to `last`, both included."""
    for slot in slots_after(expression, first - timedelta(microseconds=1)):
        if slot > last:
            return
        yield slot


def is_slot(expression: str, time: datetime) -> bool:
    return latest_slot(expression, time) == time


def longest_gap(expression: str, since: datetime) -> timedelta:
    """The longest time between two neighbouring slots, over the four years from `since` (or the next two slots)."""
    before, longest = next_slot(expression, since), timedelta(0)
    for count, slot in enumerate(slots_after(expression, before)):
        longest = max(longest, slot - before)
        before = slot
        if count > 2_000 or slot > since + timedelta(days=4 * 366):
            return longest
    raise AssertionError("slots never end")
