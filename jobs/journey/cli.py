"""A journey as lines for a terminal, or as one JSON document. Reads only; called by `manage.py journey`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import simplejson

from jobs.journey.hooks import Found, Note
from jobs.journey.lanes import Lane, Step
from jobs.journey.selectors import Journey


def as_json(value: Any) -> str:
    return str(simplejson.dumps(value, use_decimal=True, ensure_ascii=False, indent=2, default=_said))


def found_lines(found: Sequence[Found]) -> Iterator[str]:
    for one in found:
        yield f"{one.event_id}  {_time(one.at)}  {one.why}"


def lines(journey: Journey) -> Iterator[str]:
    """The same as the page, from top to bottom."""
    leg = journey.leg
    yield journey.event_id
    yield f"  published {_time(leg.published_at)} as {leg.type}, key {leg.key}" if leg else "  in no log (any more)"
    for at in journey.readapted:
        yield f"  re-adapted {_time(at)}"
    for fact in journey.origin:
        yield f"  {fact.name}: {fact.value}"
    if journey.caused_by:
        yield f"  follows from {journey.caused_by}"
    if journey.trace_id:
        yield f"  trace {journey.trace_id}"
    yield from _lanes(journey.lanes, "")
    for section in journey.sections:
        yield ""
        yield section.title
        yield from ([_note(note) for note in section.notes] or [f"  {section.empty}"])
        if section.more:
            yield "  … and more"
    if journey.follow_ups:
        yield ""
        total = f"more than {journey.counted}" if journey.more else str(journey.counted)
        yield f"What followed from it: {total}, of which {len(journey.follow_ups)} are shown"
        for follow_up in journey.follow_ups:
            yield f"  {follow_up.event_id} {follow_up.type}, key {follow_up.key}, {_time(follow_up.published_at)}"
            yield from _lanes(follow_up.lanes, "  ")
    yield ""
    yield "Not told here"
    yield from (f"  {line}" for line in journey.not_kept)


def _lanes(lanes: Sequence[Lane], indent: str) -> Iterator[str]:
    for lane in lanes:
        yield ""
        yield f"{indent}{lane.subscription}: {lane.state}. {lane.now}"
        yield from (f"{indent}  {_step(step)}" for step in lane.steps)


def _step(step: Step) -> str:
    return f"{_time(step.at)}  {step.state:<13}  {step.what}"


def _note(note: Note) -> str:
    return f"  {_time(note.at) if note.at else 'now'}  {note.what}"


def _time(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC" if at else "time not known"


def _said(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
