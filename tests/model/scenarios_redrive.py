"""One scenario per promise of the redrive that operators use: services.redrive, its steps, and queue.redrive beneath.

scenarios_settling.py has the same of a bare one, without the questions that this asks first.
"""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.utils import timezone

from jobs.dead_letters import redrive, services
from jobs.dead_letters.models import DeadLetter, Decision, Outcome, Redrive
from jobs.dead_letters.selection import Selection
from tests.jobs.conftest import effects, make_visible, rows
from tests.model.stage import (
    Open,
    claim,
    delivery,
    dies_at,
    elsewhere,
    empty,
    failing,
    permanent,
    promise,
    reset,
    send,
    settle,
    transient,
    wait_until,
)

ALL = Selection(subscription="loose")


def _bury_one(*, receives: int = 1) -> str:
    (event,) = send("a")
    for receive in range(1, receives + 1):
        make_visible()
        settle("loose", claim("loose"), failing(event, permanent() if receive == receives else transient()))
    promise(DeadLetter.objects.get().receive_count == receives, "the scenario itself: it is buried at that receive")
    return event


def _decide() -> Redrive | None:
    return services.redrive(
        selection=ALL, kind=Decision.REDRIVE, by="on-call", note="mended", stop_share=1, now=timezone.now()
    ).redrive


def _decided() -> Redrive:
    run = _decide()
    assert run is not None
    return run


def _step(run: Redrive) -> None:
    Redrive.objects.filter(pk=run.pk).update(next_at=timezone.now())
    redrive.step(run.pk)


def _finish(run: Redrive) -> None:
    """The redrive and a worker take turns, and give up quietly."""
    for _ in range(4):
        _step(run)
        empty("loose")


def _queued() -> int:
    ((count,),) = rows("SELECT count(*) FROM jobs_delivery")
    return int(count)


def a_letter_whose_event_was_applied_meanwhile_changes_nothing() -> None:
    """A replay was quicker than the person who decides."""
    event = _bury_one()
    rows(
        "INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
        " SELECT s.id, 0, m.id, m.published_at, m.event_id, m.key"
        " FROM jobs_message m, jobs_subscription s WHERE s.name = 'loose' RETURNING id"
    )
    empty("loose")
    promise(effects() == [event], "the scenario itself: the replay applies it")
    _finish(_decided())
    promise(effects() == [event], "I3: a redrive of what was applied repeats the effect")
    promise(DeadLetter.objects.get().outcome == Outcome.SUPPRESSED, "I3: nobody is told that it was applied before")


def a_redriven_letter_has_all_its_receives_again() -> None:
    event = _bury_one(receives=settings.MAX_RECEIVES)
    _step(_decided())
    promise(delivery(event) == (0, None, True), "I7: it starts with the old receive count")
    empty("loose")
    promise(effects() == [event], "I7: it is buried again without having run")


def a_letter_is_decided_once_however_often_somebody_asks() -> None:
    """A second click, or a second operator with the same page."""
    _bury_one()
    for _ in range(2):
        if run := _decide():
            _step(run)
    promise(_queued() == 1, "I7: it is in the queue twice, with twice its receives")


def a_letter_is_sent_once_however_many_steps_there_are() -> None:
    """The command is delivered again while what it sent waits in the queue."""
    _bury_one()
    run = _decided()
    _step(run)
    _step(run)
    promise(_queued() == 1, "I7: it is in the queue twice, with twice its receives")


def a_letter_is_sent_once_by_two_steps_at_once() -> None:
    """The command's lease ran out while its first worker was in the middle of a step."""
    _bury_one()
    run = _decided()
    with elsewhere() as first, elsewhere() as second:
        begun = Open(first, lambda: redrive.step(run.pk))
        other = second.start(lambda: redrive.step(run.pk))
        wait_until(lambda: other.done() or _somebody_waits(), "the second step to pass by, or to wait")
        begun.end()
        other.result(20)
    promise(_queued() == 1, "I7: it is in the queue twice, with twice its receives")


def _somebody_waits() -> bool:
    return bool(rows("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"))


def whoever_redrives_may_die_at_any_statement() -> None:
    """Killed before and after each statement of a step. Then its command comes again."""
    for when in ("before", "after"):
        number = 0
        died = True
        while died:
            number += 1
            reset()
            event = _bury_one()
            run = _decided()
            died = dies_at(number, when, partial(redrive.step, run.pk))
            where = f"after a death {when} statement {number}"
            _step(run)
            promise(_queued() < 2, f"I7: it is in the queue twice, {where}")
            _finish(run)
            promise(effects() == [event], f"I1: a letter is lost, {where}")
            promise(
                DeadLetter.objects.get().outcome == Outcome.APPLIED, f"I1: nobody learns what became of it, {where}"
            )
        promise(number > 6, "the scenario itself: it has many statements")
