"""What the admin and the command show of dead letters. Reads only, and no more rows than a page has use for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import simplejson
from django.conf import settings
from django.contrib.auth import get_user_model

from jobs.dead_letters import store
from jobs.dead_letters.case_files import RawSource, load_case_files
from jobs.dead_letters.models import AuditEntry, DeadLetter
from jobs.dead_letters.schema_diff import Field, compare, shown
from jobs.dead_letters.selection import Selection, siblings

MOST_GROUPS = 50  # kinds on the first page, those seen last
SPARK_HOURS = 24


@dataclass(frozen=True)
class Group:
    """Letters of one kind. `spark`: how many came in each of the last hours that the page shows, the oldest first."""

    fingerprint: str
    count: int
    waiting: int
    origins: int
    some_origins: list[str]
    spark: list[int]
    subscription: str
    message_type: str
    error_class: str
    reason: str
    last: datetime
    first: datetime

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "first": self.first.isoformat(), "last": self.last.isoformat()}


def groups(*, open_only: bool = True, now: datetime) -> list[Group]:
    """The kinds of letters, those seen last first; from the tally, so that it costs the same for a million."""
    since = now - timedelta(hours=SPARK_HOURS)
    rows = store.groups(open_only=open_only, most=MOST_GROUPS, since=since)
    return [Group(row[0], row[1], row[2], row[3], row[4] or [], _spark(row[5], now), *row[6:]) for row in rows]


def _spark(hours: Iterable[tuple[int, int]], now: datetime) -> list[int]:
    newest = int(now.timestamp()) // 3600
    spark = [0] * SPARK_HOURS
    for epoch, count in hours:
        age = newest - epoch // 3600
        if 0 <= age < SPARK_HOURS:
            spark[SPARK_HOURS - 1 - age] += count
    return spark


@dataclass(frozen=True)
class Page:
    letters: list[DeadLetter]
    older: str | None  # where the next page begins
    looked: int


def page(selection: Selection, *, before: str = "") -> Page:
    """One page of the list, newest first. Raises ValueError for a `before` that no page gave."""
    found = store.page(selection, _place(before) if before else None)
    letters = DeadLetter.objects.defer("body", "attributes", "traceback", "failures").in_bulk(found.ids)
    older = f"{found.older[0].isoformat()},{found.older[1]}" if found.older else None
    return Page([letters[id_] for id_ in found.ids if id_ in letters], older, found.looked)


def _place(text: str) -> tuple[datetime, int]:
    at, _, id_ = text.partition(",")
    place = datetime.fromisoformat(at)
    if place.tzinfo is None or not id_.isdigit() or len(id_) > 18:
        raise ValueError("before: is not the end of a page.")
    return place, int(id_)


@dataclass(frozen=True)
class CaseFile:
    """Everything about one letter."""

    letter: DeadLetter
    body: str
    attributes: str
    fields: list[Field]
    has_schema: bool
    raw: RawSource | None
    journey: list[tuple[datetime, str]]
    audit: list[AuditEntry]
    siblings: Selection
    siblings_open: int
    siblings_here: int  # of the same subscription
    superseded: bool
    old: bool
    goes_at: datetime


def case_file(letter: DeadLetter, *, now: datetime) -> CaseFile:
    """Read a letter without consuming it; what looks like a secret is masked."""
    files = load_case_files()
    mask = files.mask
    body = _exact(letter.pk)
    masked = mask(pretty(body))
    schema = files.schema(letter.message_type)
    near = siblings(letter.origin, letter.dead_lettered_at, settings.DEAD_LETTER_WINDOW) if letter.origin else None
    here = replace(near, subscription=letter.subscription_name) if near else None
    return CaseFile(
        letter=letter,
        body=masked,
        attributes=mask(pretty(letter.attributes)),
        fields=_masked_fields(compare(schema, body), masked),
        has_schema=schema is not None,
        raw=files.raw(letter.attributes),
        journey=store.journey(letter.event_id),
        audit=list(AuditEntry.objects.filter(letter_ids__contains=[letter.pk])[:100]),
        siblings=near or Selection(ids=(letter.pk,)),
        siblings_open=store.count_open(near, most=settings.DECISION_MOST) if near else 0,
        siblings_here=store.count_open(here, most=settings.DECISION_MOST) if here else 0,
        superseded=any(
            letter.pk in files.superseded(cases) for cases in store.cases(Selection(ids=(letter.pk,)), at_once=1)
        ),
        old=letter.published_at < now - settings.LEDGER_RETENTION,
        goes_at=letter.dead_lettered_at + settings.DEAD_LETTER_RETENTION,
    )


def _masked_fields(fields: Iterable[Field], masked: str) -> list[Field]:
    """What each field has is shown as the masked body says it: a secret is known by the name beside it."""
    try:
        body = json.loads(masked, parse_float=Decimal)
    except ValueError:
        return []
    values = body if isinstance(body, dict) else {}
    return [replace(f, found=shown(values[f.name])) if f.name in values else f for f in fields]


def _exact(letter_id: int) -> Any:
    """The body with its numbers' digits, which JSONField would read as floats."""
    return json.loads(store.body_text(letter_id), parse_float=Decimal)


def pretty(value: Any) -> str:
    return str(simplejson.dumps(value, use_decimal=True, ensure_ascii=False, indent=2))


def names(by: Iterable[str]) -> dict[str, str]:
    """Who acted, for people: members of the staff by address; the command's users by what they said."""
    ids = {int(text) for text in by if text.isdigit() and len(text) < 18}
    found = {str(user.pk): user.get_username() for user in get_user_model().objects.filter(pk__in=ids)}
    return {text: found.get(text, text) for text in by}


def age(since: datetime, now: datetime) -> timedelta:
    return max(now - since, timedelta(0))
