"""Which dead letters a page shows or a decision is about. Pure; store.py makes SQL of it, the admin a query string."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from jobs.words import utc


@dataclass(frozen=True)
class Selection:
    """Letters by id, or all that agree with every filter given. `up_to`: none that came after this one; `after`: only
    those that did, which is how a decision about very many goes on.

    `since` and `until` bound when they were dead-lettered; `decision` is "open" for those that wait for a decision, or
    one of the decisions. `error` is the error's class.
    """

    ids: tuple[int, ...] = ()
    fingerprint: str = ""
    subscription: str = ""
    origin: str = ""
    error: str = ""
    event_id: str = ""
    decision: str = ""
    since: datetime | None = None
    until: datetime | None = None
    up_to: int | None = None
    after: int | None = None

    @property
    def is_everything(self) -> bool:
        """Whether nothing narrows it: too broad for a decision."""
        return replace(self, up_to=None, after=None, decision="") == Selection()

    def as_query(self) -> dict[str, str]:
        """For a query string, a form's hidden fields, a log."""
        query = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if not value:
                continue
            if isinstance(value, tuple):
                value = ",".join(map(str, value))
            query[field.name] = value.isoformat() if isinstance(value, datetime) else str(value)
        return query

    @classmethod
    def from_query(cls, query: Mapping[str, Any]) -> Selection:
        """The other way. Raises ValueError that names the field."""
        given: dict[str, Any] = {}
        for field in fields(cls):
            text = str(query.get(field.name) or "").strip()
            if not text:
                continue
            try:
                given[field.name] = _READERS.get(field.name, str)(text)
            except ValueError as error:
                raise ValueError(f"{field.name}: {text[:60]!r} is not understood. {error}") from error
        return cls(**given)

    @property
    def words(self) -> str:
        """For people and the audit log."""
        if self.ids:
            shown = ", ".join(map(str, self.ids[:10]))
            return f"{'letters' if len(self.ids) > 1 else 'letter'} {shown}" + (
                f" and {len(self.ids) - 10} more" if len(self.ids) > 10 else ""
            )
        told = [f"{name} {value}" for name, value in self.as_query().items() if name not in UNSAID]
        told += [f"{name} {utc(at)}" for name, at in (("since", self.since), ("until", self.until)) if at]
        return "all like this: " + (", ".join(told) or "every letter")


UNSAID = ("since", "until", "up_to", "after")  # times in our own words; the bounds are no filter of anybody's
LONGEST_LIST = 1_000
LARGEST_ID = 2**63 - 1


def _ids(text: str) -> tuple[int, ...]:
    ids = tuple(sorted({_id(part) for part in text.split(",")}))
    if len(ids) > LONGEST_LIST:
        raise ValueError(f"At most {LONGEST_LIST} ids at once; select by filters.")
    return ids


def _id(text: str) -> int:
    number = int(text)
    if not 0 < number <= LARGEST_ID:
        raise ValueError("Give a letter's number.")
    return number


def _time(text: str) -> datetime:
    value = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if value.tzinfo is None or not 1900 < value.year < 9000:
        raise ValueError("A time needs its zone, for example 2026-03-14T09:00Z.")
    return value


def siblings(origin: str, at: datetime, window: timedelta) -> Selection:
    """What came from the same origin around the same time."""
    return Selection(origin=origin, since=at - window / 2, until=at + window / 2)


_READERS: dict[str, Any] = {"ids": _ids, "since": _time, "until": _time, "up_to": _id, "after": _id}
