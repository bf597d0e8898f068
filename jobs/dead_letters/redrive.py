"""A redrive on its way: portions at a rate, judged again before they go, watched, stopped when they fail again.

Guarantee: a step is one transaction under the redrive's row lock, so however often its command is delivered a letter
is sent once; deliveries, outcomes and counts agree. The handler of the `dead-letter-redrive` subscription: `prepare`,
`perform` and `record` in the manner of an External route.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import connection, transaction

from jobs import queue, wakeup
from jobs.dead_letters import preflight, rules, store
from jobs.dead_letters.case_files import CannotError, Case, load_case_files
from jobs.dead_letters.models import Decision, Outcome, Redrive
from jobs.dead_letters.services import command
from jobs.messages import Message
from jobs.outbox import publish

log = structlog.get_logger(__name__)
PORTION_SECONDS = 1
IDLE = timedelta(milliseconds=500)  # between two looks at what has been sent


@dataclass(frozen=True)
class Turn:
    more: bool
    delay: timedelta = timedelta(0)


def prepare(messages: Sequence[Message]) -> list[int | None]:
    """The redrives' numbers; None for one at its end."""
    wanted = [message.number("redrive_id") for message in messages]
    going = set(Redrive.objects.filter(pk__in=wanted, ended_at=None).values_list("pk", flat=True))
    return [id_ if id_ in going else None for id_ in wanted]


def check(message: Message) -> None:
    """Raises PermanentError for a command that names nothing."""
    message.number("redrive_id")


def perform(redrive_id: int) -> Turn:
    """Some seconds of steps, on this thread's own connection."""
    until = time.monotonic() + settings.REDRIVE_TURN.total_seconds()
    try:
        while True:
            turn = step(redrive_id)
            if not turn.more or turn.delay or time.monotonic() > until:
                return turn
    finally:
        connection.close()


def record(pairs: Sequence[tuple[Message, Turn | None]]) -> None:
    """What is not at its end goes on."""
    for message, turn in pairs:
        if turn is not None and turn.more:
            publish([command(Redrive(pk=message.body["redrive_id"]))], delay=turn.delay)


def step(redrive_id: int) -> Turn:
    """See what became of what was sent, then send, stop or end. Waits for nobody: another who is at it has the lock."""
    with transaction.atomic():
        run = Redrive.objects.select_for_update(skip_locked=True).filter(pk=redrive_id).first()
        if run is None:
            return Turn(more=Redrive.objects.filter(pk=redrive_id, ended_at=None).exists(), delay=IDLE)
        if run.ended_at:
            return Turn(more=False)
        store.settle_sent(run.pk)
        now = store.now()
        move = rules.next_move(
            store.counts(run.pk),
            rate=run.rate_per_second,
            stop_share=run.stop_share,
            sample=settings.REDRIVE_SAMPLE,
            stop_asked_by=run.stop_asked_by,
            may_send=now >= run.next_at,
        )
        match move:
            case rules.Send(count=count):
                _send(run, count)
                run.next_at = now + timedelta(seconds=PORTION_SECONDS)
            case rules.Stop(because=because):
                run.stopped_because = f"{because}; {store.release(run.pk):,} were not sent"
                run.state = Redrive.State.STOPPED
                log.warning("redrive.stopped", redrive=run.pk, because=because)
            case rules.Done():
                run.ended_at = now
                if run.state == Redrive.State.RUNNING:
                    run.state = Redrive.State.DONE
                log.info("redrive.ended", redrive=run.pk, state=run.state, counts=store.counts(run.pk))
        run.counts = store.counts(run.pk)
        run.save(update_fields=["next_at", "stopped_because", "state", "ended_at", "counts"])
    waits = isinstance(move, rules.Wait)
    return Turn(more=run.ended_at is None, delay=IDLE if waits else timedelta(0))


def _send(run: Redrive, count: int) -> None:
    """One portion: what the present code would refuse again stays here, what the ledger knows needs no delivery."""
    cases = store.queued(run.pk, count)
    kind = Decision(run.kind)
    verdicts = dict(zip((case.letter_id for case in cases), preflight.judge(cases, kind=kind), strict=True))
    older = load_case_files().superseded(cases)
    why_not = {id_: verdict.why_not for id_, verdict in verdicts.items() if verdict.why_not}
    became: dict[int, tuple[str, bool]] = {}
    for case in cases:
        if case.message_id is None and case.letter_id not in why_not:
            failed = _retake(case)
            if failed:
                why_not[case.letter_id] = failed
            else:
                became[case.letter_id] = (Outcome.APPLIED.value, False)
    wanted = [c.letter_id for c in cases if c.letter_id not in why_not and c.letter_id not in became]
    sent, partitions = queue.redrive({id_: verdicts[id_].body for id_ in wanted})
    became |= {id_: ((Outcome.SENT if id_ in sent else Outcome.SUPPRESSED).value, id_ in older) for id_ in wanted}
    store.outcomes(run.pk, became)
    if why_not:
        store.refuse(why_not)
    if partitions:
        transaction.on_commit(lambda: wakeup.announce(partitions))


def _retake(case: Case) -> str:
    """Take again what never was a message; why it cannot be, or ""."""
    try:
        with transaction.atomic():
            load_case_files().retake(case, store.now())
    except CannotError as error:
        return str(error)
    return ""
