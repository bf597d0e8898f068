"""Effects outside Postgres: no transaction while they happen, each settled on its own, failures classified."""

from collections.abc import Iterator
from datetime import timedelta
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest

from jobs.database import in_transaction
from jobs.errors import PermanentError, TransientError
from jobs.lanes import ExternalLane
from jobs.models import DeadLetter, Delivery, ProcessedMessage
from jobs.worker import drain, groups
from tests.jobs import routes
from tests.jobs.conftest import effects, make_visible, rows


def test_an_external_effect_happens_with_no_transaction_open_and_is_recorded_once(send: Any) -> None:
    ids = send(*"abcdefghij", type_="do_outside")
    open_transactions: list[bool] = []
    routes.perform_with.append(lambda task: open_transactions.append(in_transaction()))
    drain(["outside"])
    assert sorted(effects()) == sorted(ids)
    assert open_transactions == [False] * 10
    assert not Delivery.objects.exists()


def test_what_is_no_longer_wanted_is_settled_without_the_effect(send: Any) -> None:
    (event_id,) = send("a", type_="do_outside", unwanted=True)
    done: list[Any] = []
    routes.perform_with.append(done.append)
    drain(["outside"])
    assert done == []
    assert ProcessedMessage.objects.filter(event_id=event_id).exists()
    assert not Delivery.objects.exists()


def test_an_effect_already_in_the_ledger_is_not_performed_again(send: Any) -> None:
    (event_id,) = send("a", type_="do_outside")
    ProcessedMessage.objects.create(consumer_name="outside", event_id=event_id, processed_at="2026-01-01T00:00:00Z")
    done: list[Any] = []
    routes.perform_with.append(done.append)
    drain(["outside"])
    assert done == []
    assert not Delivery.objects.exists()


def test_a_failing_effect_is_retried_and_a_permanent_one_is_buried_while_the_others_go_on(send: Any) -> None:
    ids = send(*"abcd", type_="do_outside")

    def fail_some(task: Any) -> None:
        if task["seq"] == 2:
            raise TransientError("provider: 503", retry_after=9)
        if task["seq"] == 3:
            raise PermanentError("recipient refused: 550")

    routes.perform_with.append(fail_some)
    drain(["outside"])
    assert sorted(effects()) == sorted([ids[0], ids[3]])
    assert DeadLetter.objects.get().event_id == ids[2]
    assert rows("SELECT event_id, receive_count FROM jobs_delivery") == [(ids[1], 1)]
    routes.perform_with.clear()
    make_visible()
    drain(["outside"])
    assert len(effects()) == 3


# --- By the dozen -----------------------------------------------------------------------------------------------


@pytest.fixture
def lane(send: Any) -> Iterator[ExternalLane]:
    """The lane of the subscription, as a worker has it; it does not wait but writes down for how long it would."""
    (group,) = groups(["outside"], 1, lambda: False)
    (made,) = group.lanes
    assert isinstance(made, ExternalLane)
    yield made
    made.performance.close()


@pytest.fixture
def rests(lane: ExternalLane, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    asked: list[float] = []
    monkeypatch.setattr(lane.frontier, "rest", asked.append)
    return asked


def step(lane: ExternalLane) -> None:
    lane.sweeper.sweep(now=True)
    lane.step()


def test_what_comes_alone_is_claimed_at_once_and_what_follows_it_closely_waits_for_more(
    send: Any, lane: ExternalLane, rests: list[float], settings: Any
) -> None:
    settings.EXTERNAL_CLAIM_INTERVAL = timedelta(hours=1)
    send("a", type_="do_outside")
    step(lane)
    assert (lane.claimed, rests) == (1, [])
    send("a", "a", type_="do_outside")
    step(lane)
    assert lane.claimed == 1
    assert len(effects()) == 1, "nothing that is done waits with it"
    assert 3_500 < rests[0] <= 3_600
    lane._next_claim = 0.0  # the hour is over
    step(lane)
    assert lane.claimed == 3


def test_after_a_claim_that_was_full_the_next_one_does_not_wait(
    send: Any, lane: ExternalLane, rests: list[float], settings: Any
) -> None:
    settings.EXTERNAL_CLAIM_INTERVAL = timedelta(hours=1)
    settings.EXTERNAL_SETTLE_TOGETHER = timedelta(seconds=30)
    send(*"aaaaaaaaa", type_="do_outside")  # one partition, and room for 4
    for claimed in (4, 8, 9):
        step(lane)
        assert lane.claimed == claimed
    assert rests == []


def test_what_is_done_soon_is_settled_together(
    send: Any, lane: ExternalLane, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EXTERNAL_SETTLE_TOGETHER = timedelta(seconds=30)
    settled: list[int] = []
    settle = lane.performance._settle

    def counted(claim: Any, pairs: Any) -> None:
        settled.append(len(pairs))
        settle(claim, pairs)

    monkeypatch.setattr(lane.performance, "_settle", counted)
    routes.perform_with.append(lambda task: sleep(0.05))  # what a quick provider takes
    send(*"aaaa", type_="do_outside")
    step(lane)
    step(lane)
    assert settled == [4]


def test_one_that_takes_long_does_not_hold_up_the_others(send: Any, lane: ExternalLane) -> None:
    ids = send(*"aaaa", type_="do_outside")
    answered = Event()
    routes.perform_with.append(lambda task: task["seq"] == 2 and answered.wait(30))
    try:
        deadline = monotonic() + 30
        while len(effects()) < 3:
            assert monotonic() < deadline
            step(lane)
        assert sorted(effects()) == sorted([ids[0], *ids[2:]])
    finally:
        answered.set()
