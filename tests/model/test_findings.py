"""Faults that the model found in the queue; each of these failed before it was mended."""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from jobs import failures
from jobs.errors import PermanentError
from jobs.frontier import Frontier
from jobs.messages import Message
from jobs.models import DeadLetter
from jobs.queue import Look
from jobs.worker import drain, groups
from tests.jobs import routes
from tests.jobs.conftest import effects, make_visible, queue_db, rows, send
from tests.model.stage import claim, reset, settle

__all__ = ["queue_db", "send"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_burial_that_finds_its_delivery_taken_over_lets_no_later_message_of_the_key_go(
    send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker pauses between the rollback of a failed attempt and its burial; its lease ends; another takes over."""
    reset()
    first, second = send("a", "a")
    sleeper, heirs = claim("strict"), []

    def old_code(messages: Sequence[Message]) -> None:
        if messages[0].event_id == first:
            raise PermanentError("the heir's code is newer and can do it")
        routes.record_effects(messages)

    classify = failures.classify

    def pause(*arguments: Any, **named: Any) -> Any:
        make_visible()
        heirs.append(claim("strict"))
        return classify(*arguments, **named)

    monkeypatch.setattr(failures, "classify", pause)
    settle("strict", sleeper, old_code)
    monkeypatch.undo()
    settle("strict", heirs[0])
    drain(["strict"])
    assert effects() == [first, second]


def test_a_handler_that_outstays_its_time_limit_is_charged_for_it(send: Any, settings: Any) -> None:
    """The server ends its session; the lane's recovery gives the delivery back uncharged, each time anew."""
    settings.HANDLER_TIME_LIMIT = timedelta(milliseconds=200)
    settings.RETRY_BACKOFF_BASE = timedelta(0)
    send("a", type_="do_loosely")
    routes.before_effect.append(lambda messages: time.sleep(0.4))
    (group,) = groups(["loose"], 1, lambda: False)
    lane, lost = group.lanes[0], False
    for _ in range(12):
        try:
            if lost:
                lane.recover()
                lost = False
            group.sweeper.sweep(now=True)
            lane.step()
        except Exception:
            lost = True
            connection.close()
    assert DeadLetter.objects.exists(), rows("SELECT receive_count, failures FROM jobs_delivery")


def test_an_event_delivered_twice_in_one_claim_is_performed_once(send: Any) -> None:
    (event_id,) = send("a", type_="do_outside")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
            " SELECT subscription_id, part, message_id, published_at, event_id, key FROM jobs_delivery"
        )
    performed: list[Any] = []
    routes.perform_with.append(performed.append)
    drain(["outside"])
    assert (len(performed), effects()) == (1, [event_id])


def test_a_sweep_during_a_claim_that_looked_past_blocked_keys_moves_no_mark() -> None:
    """Another lane's sweep forgets the blocked keys between this lane's claim and what it learns of it."""
    frontier, p = Frontier(), (1, 0)

    def claim_past_the_hot_key(first: int, xmin: int, xmax: int) -> None:
        assert frontier.blocked(p) == ["hot"]
        frontier.look_from_the_front()
        frontier.learn(p, Look(seen=2, first=first, blocked=None, xmin=xmin, xmax=xmax), claimed=2, partial=True)

    frontier.learn(p, Look(seen=4, first=1, blocked=["hot"], xmin=50, xmax=60), claimed=0)
    claim_past_the_hot_key(100, 61, 70)
    frontier.learn(p, Look(seen=4, first=1, blocked=["hot"], xmin=65, xmax=80), claimed=0)  # a long transaction
    claim_past_the_hot_key(120, 75, 90)
    assert frontier.mark(p) <= 1, "the hot key's rows, from 1 on, are below the mark and never seen again"
