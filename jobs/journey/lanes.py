"""What one subscription did with one event, as steps in the order of time. Pure; imports no Django.

The states are the course's words. What is not recorded is left out here and said by the page: see selectors.NOT_KEPT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """The four ordinary ones, the two unhappy ones, and what people did."""

    PUBLISHED = "published"
    AVAILABLE = "available"
    IN_FLIGHT = "in-flight"
    ACKED = "acked"
    REDELIVERED = "redelivered"
    DEAD_LETTERED = "dead-lettered"
    DECIDED = "decided"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Step:
    """`letter`: the dead letter that it is about, which has a page."""

    at: datetime | None
    state: State
    what: str
    letter: int | None = None


@dataclass(frozen=True)
class Queued:
    """A delivery that waits or is in flight; without an id the partition holds more than were looked at."""

    delivery_id: int | None
    visible_at: datetime
    receive_count: int
    first_received_at: datetime | None
    failures: Sequence[Mapping[str, Any]]
    leased: bool
    visible: bool


@dataclass(frozen=True)
class Past:
    """A delivery that is gone, of which there was more to say than the ledger does."""

    settled_at: datetime
    suppressed: bool
    receive_count: int
    first_received_at: datetime | None
    failures: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Act:
    """What somebody did about a letter."""

    at: datetime
    action: str
    by: str
    note: str


@dataclass(frozen=True)
class Letter:
    id: int
    buried_at: datetime
    first_received_at: datetime | None
    receive_count: int
    error: str
    failures: Sequence[Mapping[str, Any]]
    decision: str
    redrive: int | None
    sent_at: datetime | None
    settled_at: datetime | None
    outcome: str  # as people read it
    applied: bool  # the outcome is that of the ledger, which says when
    acts: Sequence[Act] = ()


@dataclass(frozen=True)
class Facts:
    """All that is known of one event in one subscription."""

    published_at: datetime
    subscribed_at: datetime | None  # None: there is no such subscription (any more)
    paused_at: datetime | None = None
    queued: Sequence[Queued] = ()
    applied_at: datetime | None = None
    past: Sequence[Past] = ()
    letters: Sequence[Letter] = ()


@dataclass(frozen=True)
class Lane:
    """One subscription's part of a journey; `now` says in a sentence where it stands."""

    subscription: str
    state: State
    now: str
    steps: list[Step] = field(default_factory=list)


def lane(subscription: str, facts: Facts, *, now: datetime, ledger: timedelta) -> Lane:
    """The steps of one subscription, and where the event stands there."""
    steps = [*_queued(facts.queued), *_past(facts.past), *_applied(facts)]
    for letter in facts.letters:
        steps += _letter(letter)
    handed: list[Queued | Past | Letter] = [*facts.queued, *facts.past, *facts.letters]
    first = min((each.first_received_at for each in handed if each.first_received_at), default=None)
    if first:
        steps.append(Step(first, State.IN_FLIGHT, "handed out for the first time"))
    steps.sort(key=lambda step: (step.at is None, step.at or now, step.state != State.IN_FLIGHT))
    state, said = _standing(facts, now=now, ledger=ledger)
    return Lane(subscription, state, said, steps)


def _standing(facts: Facts, *, now: datetime, ledger: timedelta) -> tuple[State, str]:
    here = [each for each in facts.queued if each.delivery_id is not None]
    if here:
        return _where(here[0], paused=facts.paused_at is not None)
    waits = [letter for letter in facts.letters if not letter.decision and not letter.applied]
    if facts.applied_at is not None:
        return State.ACKED, "Applied, and acked with it."
    if waits:
        return State.DEAD_LETTERED, f"Dead-lettered as letter {waits[-1].id}; it waits for a decision."
    if facts.letters:
        last = facts.letters[-1]
        return State.DEAD_LETTERED, f"Dead-lettered as letter {last.id}; {last.outcome or last.decision}."
    if facts.queued and facts.published_at < now - ledger:
        return State.UNKNOWN, "It was acked and that is forgotten, or it waits behind more than were looked at."
    if facts.queued:
        return State.AVAILABLE, "It waits behind more of its partition than were looked at."
    if facts.subscribed_at is None:
        return State.UNKNOWN, "There is no such subscription any more."
    if facts.subscribed_at > facts.published_at:
        return State.UNKNOWN, "The subscription is younger than the message, and has not been given it."
    if facts.published_at < now - ledger:
        return State.ACKED, f"Acked; when is forgotten, for the ledger is kept {ledger.days} days."
    return State.UNKNOWN, "It neither waits, nor was applied, nor is dead-lettered. That should not be: tell somebody."


def _where(queued: Queued, *, paused: bool) -> tuple[State, str]:
    hold = " The subscription is paused." if paused else ""
    if queued.leased and not queued.visible:
        return State.IN_FLIGHT, f"In flight, receive {queued.receive_count}.{hold}"
    if queued.leased:
        return (
            State.REDELIVERED,
            f"Its worker fell silent on receive {queued.receive_count}; it is handed out alone next.{hold}",
        )
    if not queued.visible:
        why = "It failed and waits before it is tried again." if queued.receive_count else "It is not due yet."
        return (State.REDELIVERED if queued.receive_count else State.AVAILABLE), f"{why}{hold}"
    return State.AVAILABLE, f"Available, and handed out when its turn comes.{hold}"


def _queued(queued: Iterable[Queued]) -> list[Step]:
    steps = []
    for each in queued:
        if each.delivery_id is None:
            continue
        steps += _failures(each.failures)
        if each.leased and not each.visible:
            steps.append(Step(each.visible_at, State.IN_FLIGHT, f"receive {each.receive_count} is hidden until then"))
        elif not each.visible:
            steps.append(Step(each.visible_at, State.AVAILABLE, "available again"))
    return steps


def _past(past: Iterable[Past]) -> list[Step]:
    steps = []
    for each in past:
        steps += _failures(each.failures)
        if each.suppressed:
            what = f"came again, on receive {each.receive_count}; the ledger knew it, so it had no effect"
            steps.append(Step(each.settled_at, State.ACKED, what))
    return steps


def _applied(facts: Facts) -> list[Step]:
    if facts.applied_at is None:
        return []
    receives = [each.receive_count for each in facts.past if not each.suppressed]
    what = f"applied on receive {receives[-1]}" if receives else "applied"
    return [Step(facts.applied_at, State.ACKED, f"{what}, and acked in the same transaction")]


def _letter(letter: Letter) -> list[Step]:
    # The last failure is the burial.
    steps = _failures(letter.failures[:-1])
    times = "receive" if letter.receive_count == 1 else "receives"
    what = f"letter {letter.id}, after {letter.receive_count} {times}: {letter.error}"
    steps.append(Step(letter.buried_at, State.DEAD_LETTERED, what, letter.id))
    for act in letter.acts:
        steps.append(Step(act.at, State.DECIDED, f"{act.action} by {act.by}: {act.note}", letter.id))
    if letter.sent_at:
        steps.append(Step(letter.sent_at, State.AVAILABLE, f"sent again by redrive {letter.redrive}", letter.id))
    if letter.settled_at and letter.outcome:
        state = State.ACKED if letter.applied else State.DEAD_LETTERED
        steps.append(Step(letter.settled_at, state, f"redrive {letter.redrive}: {letter.outcome}", letter.id))
    return steps


def _failures(failures: Iterable[Mapping[str, Any]]) -> list[Step]:
    steps = []
    for failure in failures:
        reason, error = failure.get("reason") or "", failure.get("error_class") or "failed"
        what = f"receive {failure.get('receive', '?')}: {error}{f': {reason}' if reason else ''}"
        steps.append(Step(_time(failure.get("at")), State.REDELIVERED, what))
    return steps


def _time(text: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo else None
