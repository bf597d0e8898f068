"""What a person decides about dead letters: the one way in for the admin and for `manage.py dead_letters`.

Guarantee: each act takes only letters that still wait for a decision, locked, so that of two who decide at once (or one
who clicks twice) each letter has one decision; act, marks and audit entry are one transaction. More than DECISION_MOST
are done in portions, and the answer says what is left. Nothing leaves the table. Who may do what is the caller's to
check (the permissions are DeadLetter's).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from jobs.dead_letters import preflight, store
from jobs.dead_letters.case_files import load_case_files
from jobs.dead_letters.events import RUN_REDRIVE
from jobs.dead_letters.models import Decision, Redrive
from jobs.dead_letters.selection import Selection
from jobs.messages import NewMessage
from jobs.outbox import publish
from jobs.words import utc

log = structlog.get_logger(__name__)


class RefusedError(ValueError):
    """The act cannot be done as asked; the text names the field and says why. Nothing was changed."""


class NeedsTellingError(RefusedError):
    """Letters older than the ledger are processed again: somebody must be told first."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"told: {count:,} of these are older than the ledger's {settings.LEDGER_RETENTION.days} days, so nothing "
            "would stop them from being processed again. Say who has been told."
        )
        self.count = count


@dataclass(frozen=True)
class Done:
    """`ids`: whom the act was about. `left_out`: of the selection, but not fit for it (decided meanwhile, current).

    `rest`: what is still to be done, where there were more than DECISION_MOST. The same act takes it.
    """

    ids: list[int]
    left_out: int = 0
    rest: Selection | None = None
    redrive: Redrive | None = None


def discard(*, selection: Selection, by: str, note: str, now: datetime) -> Done:
    """Mark as not to be processed, for good. The letters stay until retention removes them."""
    return _mark(selection, Decision.DISCARD, by=by, note=note, now=now)


def discard_superseded(*, selection: Selection, by: str, note: str, now: datetime) -> Done:
    """Discard those of which something newer has been applied since, and leave the others alone."""
    _check(selection, by, note)
    with _act(selection, "superseded", by, note) as entry:
        ids, rest = _lock(selection)
        older: set[int] = set()
        for cases in store.cases(Selection(ids=tuple(ids))):
            older |= load_case_files().superseded(cases)
        chosen = sorted(older)
        store.decide(chosen, Decision.SUPERSEDED, by=by, note=note, waits_from=None, redrive=None)
        entry(chosen)
    return Done(chosen, len(ids) - len(chosen), rest)


def quarantine(*, selection: Selection, by: str, note: str, wake_at: datetime, now: datetime) -> Done:
    """Put aside until a date, for somebody who is not here; until then it pages nobody. Raises RefusedError."""
    if wake_at <= now:
        raise RefusedError(f"wake_at: {utc(wake_at)} has passed. Choose a time ahead.")
    return _mark(selection, Decision.QUARANTINE, by=by, note=note, now=now, wake_at=wake_at)


def reopen(*, selection: Selection, by: str, note: str, now: datetime) -> Done:
    """Take back a discard or a quarantine. What was redriven stays redriven."""
    _check(selection, by, note)
    with _act(selection, "reopen", by, note) as entry:
        asked, rest = _lock(selection, decided_too=True)
        ids = store.reopen(asked)
        entry(ids)
    return Done(ids, len(asked) - len(ids), rest)


def assign(*, selection: Selection, by: str, note: str, to: str, now: datetime) -> Done:
    """Say who is to decide."""
    if not to:
        raise RefusedError("to: say who is to decide.")
    _check(selection, by, note)
    with _act(selection, "assign", by, note, to=to) as entry:
        ids, rest = _lock(selection)
        store.assign(ids, to)
        entry(ids)
    return Done(ids, rest=rest)


def comment(*, selection: Selection, by: str, note: str, now: datetime) -> Done:
    """Write something into the case files."""
    _check(selection, by, note)
    with _act(selection, "comment", by, note) as entry:
        ids, rest = _lock(selection, decided_too=True)
        entry(ids)
    return Done(ids, rest=rest)


def redrive(
    *,
    selection: Selection,
    kind: Decision,
    by: str,
    note: str,
    now: datetime,
    told: str = "",
    rate_per_second: int | None = None,
    stop_share: float | None = None,
) -> Done:
    """Offer letters to their subscriptions again, in the background; the redrive that does it is in the answer.

    `kind`: REDRIVE as they are, READAPT from their raw bodies. Raises NeedsTellingError for letters older than the
    ledger unless `told` says who knows, and RefusedError.
    """
    _check(selection, by, note)
    rate = settings.REDRIVE_RATE if rate_per_second is None else rate_per_second
    share = settings.REDRIVE_STOP_SHARE if stop_share is None else stop_share
    if not 1 <= rate <= settings.REDRIVE_MOST_RATE:
        raise RefusedError(f"rate: must be 1 to {settings.REDRIVE_MOST_RATE} letters a second, not {rate}.")
    if not 0 <= share <= 1:
        raise RefusedError(f"stop_share: must be between 0 and 1, not {share}.")
    with _act(selection, kind.value, by, note) as entry:
        ids, rest = _lock(selection)
        if not ids:
            return Done([])
        chosen = Selection(ids=tuple(ids))
        if not told and (old := store.count_older(chosen, preflight.ledger_reaches(now))):
            raise NeedsTellingError(old)
        run = Redrive.objects.create(
            kind=kind.value,
            selection=selection.words,
            total=len(ids),
            rate_per_second=rate,
            stop_share=share,
            by=by,
            note=note,
            told=told,
            counts={"queued": len(ids)},
        )
        store.decide(ids, kind, by=by, note=note, waits_from=None, redrive=run.pk)
        entry(ids, redrive=run.pk, told=told, rate_per_second=rate, stop_share=share)
        publish([command(run)])
    log.info("redrive.begun", redrive=run.pk, letters=len(ids), kind=kind.value)
    return Done(ids, rest=rest, redrive=run)


def stop(*, redrive_id: int, by: str, note: str, now: datetime) -> bool:
    """Send no more of a redrive; whether it was running. What has been sent is finished, the rest waits again."""
    _check(Selection(ids=(redrive_id,)), by, note)
    with _act(None, "stop", by, note) as entry:
        stopped = Redrive.objects.filter(pk=redrive_id, state=Redrive.State.RUNNING, stop_asked_by="").update(
            stop_asked_by=by
        )
        if stopped:
            entry([], redrive=redrive_id, even_if_none=True)
    return bool(stopped)


def command(run: Redrive) -> NewMessage:
    return NewMessage(RUN_REDRIVE, f"redrive:{run.pk}", {"redrive_id": run.pk})


def _mark(
    selection: Selection, decision: Decision, *, by: str, note: str, now: datetime, wake_at: datetime | None = None
) -> Done:
    _check(selection, by, note)
    with _act(selection, decision.value, by, note) as entry:
        ids, rest = _lock(selection)
        if ids and wake_at:
            _refuse_to_oversleep(ids, wake_at)
        store.decide(ids, decision, by=by, note=note, waits_from=wake_at, redrive=None)
        entry(ids, **({"wake_at": wake_at.isoformat()} if wake_at else {}))
    return Done(ids, rest=rest)


def _refuse_to_oversleep(ids: list[int], wake_at: datetime) -> None:
    gone = store.first_to_go(ids) + settings.DEAD_LETTER_RETENTION
    if wake_at > gone - settings.DEAD_LETTER_WARN_EXPIRY:
        latest = utc(gone - settings.DEAD_LETTER_WARN_EXPIRY)
        raise RefusedError(f"wake_at: the oldest of these is removed at {utc(gone)}. Choose a time before {latest}.")


def _check(selection: Selection, by: str, note: str) -> None:
    if not by.strip():
        raise RefusedError("by: say who decides.")
    if not note.strip():
        raise RefusedError("note: say why. Whoever comes after you will ask.")
    if selection.is_everything:
        raise RefusedError("selection: choose letters, or at least one of the filters.")


def _lock(selection: Selection, *, decided_too: bool = False) -> tuple[list[int], Selection | None]:
    """As many as one transaction takes, those that came first; and the selection of the others, if there are any."""
    most = settings.DECISION_MOST
    lock = store.lock_any if decided_too else store.lock_open
    ids = lock(selection, most=most + 1)
    return (ids, None) if len(ids) <= most else (ids[:most], replace(selection, after=ids[most - 1]))


Entry = Callable[..., None]


@contextmanager
def _act(selection: Selection | None, action: str, by: str, note: str, **always: Any) -> Iterator[Entry]:
    """One transaction, and in it the audit entry that the act asks for; none for an act about no letter."""

    def entry(ids: list[int], *, even_if_none: bool = False, **details: Any) -> None:
        if ids or even_if_none:
            words = selection.words if selection else ""
            store.write_audit(by=by, action=action, selection=words, ids=ids, note=note, details={**always, **details})
            log.info("dead_letters.decided", action=action, letters=len(ids))

    with transaction.atomic():
        yield entry
