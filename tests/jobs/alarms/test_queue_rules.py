"""When the queue and the database are said to be in trouble: each rule on both sides of its threshold."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobs.alarms import queue_rules as rules
from jobs.alarms.queue_rules import QueueLimits, ServerFacts
from jobs.gauges.figures import Flows, Partition, Pause, Subscription
from tests.jobs.gauges.test_arithmetic import MINUTE, NOW, of, partition

LIMITS = QueueLimits(
    warn_share=0.5,
    page_share=0.8,
    silent_after=15 * MINUTE,
    silent_factor=3,
    suspended_after=60 * MINUTE,
    horizon_after=10 * MINUTE,
    dead_rows=1_000_000,
    notify_queue=0.25,
    connections=0.85,
)
SECOND = timedelta(seconds=1)


def said(*subscriptions: Subscription, lives: bool = True) -> set[tuple[str, str]]:
    return {(c.alarm, c.subject) for c in rules.judge_queue(subscriptions, NOW, LIMITS, worker_lives=lives)}


@pytest.mark.parametrize(
    ("waits", "alarms"),
    [
        (2.5 * MINUTE - SECOND, set()),
        (2.5 * MINUTE, {"queue-behind"}),  # half of five minutes
        (4 * MINUTE - SECOND, {"queue-behind"}),
        (4 * MINUTE, {"queue-behind", "queue-late"}),  # four fifths
    ],
)
def test_ages_alarm_at_shares_of_what_is_promised(waits: timedelta, alarms: set[str]) -> None:
    s = of(*[partition(n, depth=1, waits=waits) for n in range(4)])
    assert said(s) == {(alarm, "s") for alarm in alarms}
    assert said(replace(s, promise=60 * MINUTE)) == set(), "by the subscription's own promise, if it has one"


def test_one_late_partition_among_idle_ones_alarms_by_itself() -> None:
    late = partition(2, depth=7, waits=40 * MINUTE)
    s = of(partition(0), partition(1), late, partition(3))
    assert said(s) == {("queue-behind", "s"), ("queue-late", "s"), ("partition-hot", "s, partition 2")}


def flowing(arrived: int, acked: int, depth: int) -> Partition:
    return replace(partition(0, depth=depth), flows=Flows(arrived=arrived, acked=acked))


@pytest.mark.parametrize(
    ("p", "grows"),
    [
        (flowing(5_000, 4_000, 1_000), True),  # more comes than goes
        (flowing(0, 0, 1_000), True),  # nobody works
        (flowing(0, 5_000, 6_001), True),  # a thousand a minute: six minutes
        (flowing(0, 5_000, 4_900), False),
        (flowing(5_000, 5_000, 900), False),  # less than a minute's work waits: it keeps up
        (flowing(0, 0, 5), False),  # a handful; their age says the rest
    ],
)
def test_a_queue_that_does_not_drain_in_time_is_said_before_anything_is_old(p: Partition, grows: bool) -> None:
    assert said(of(p)) == ({("queue-growing", "s")} if grows else set())
    assert said(replace(of(p), paused_at=NOW - MINUTE)) == set(), "a pause is meant"


def test_a_message_that_cycles_is_said_although_nothing_is_behind_it() -> None:
    poison = partition(1, depth=1, waits=3 * MINUTE, retrying=1, unreceived=0)
    assert ("message-cycling", "s, partition 1") in said(of(partition(0), poison))
    assert "partition-hot" not in {alarm for alarm, _ in said(of(partition(0), poison))}
    behind = partition(1, depth=1, waits=3 * MINUTE)
    assert "message-cycling" not in {alarm for alarm, _ in said(of(partition(0), behind))}


def test_a_pause_of_more_than_an_hour_was_forgotten() -> None:
    s = of(partition(0))
    assert said(replace(s, paused_at=NOW - 59 * MINUTE)) == set()
    assert said(replace(s, paused_at=NOW - 61 * MINUTE)) == {("subscription-suspended", "s")}


def test_types_that_nobody_knows_or_receives_are_said() -> None:
    assert said(replace(of(partition(0)), unknown_types={"wine.sold": 3})) == {("type-unknown", "s")}
    (condition,) = rules.judge_unsubscribed({"wine.sold": 3})
    assert (condition.alarm, condition.subject) == ("type-unsubscribed", "wine.sold")


def test_that_nobody_works_is_said_with_what_waits() -> None:
    s = of(partition(0, depth=1, waits=5 * MINUTE))
    for lives in (True, False):
        told = [c.summary for c in rules.judge_queue([s], NOW, LIMITS, worker_lives=lives)]
        assert ["No worker" in summary for summary in told if "waited" in summary] == [not lives] * 2


@pytest.mark.parametrize(
    ("ago", "longest", "slots", "stopped"),
    [
        (21 * MINUTE, 5 * MINUTE, 288, True),  # it came every five minutes; the slot itself is five
        (19 * MINUTE, 5 * MINUTE, 288, False),  # a quarter of an hour is not over
        (50 * MINUTE, 20 * MINUTE, 60, False),  # it has paused for as long before
        (70 * MINUTE, 20 * MINUTE, 60, True),
        (90 * MINUTE, 5 * MINUTE, 23, False),  # too seldom to be a habit
    ],
)
def test_arrivals_that_stop_are_told_from_those_that_pause(
    ago: timedelta, longest: timedelta, slots: int, stopped: bool
) -> None:
    found = list(rules.judge_arrivals({"s": Pause(NOW - ago, longest, slots)}, NOW, LIMITS, slot=5 * MINUTE))
    assert [c.alarm for c in found] == (["arrivals-stopped"] if stopped else [])
    assert not list(rules.judge_arrivals({"s": None}, NOW, LIMITS, slot=5 * MINUTE))


WELL: dict[str, Any] = {
    "held": 9 * MINUTE,
    "held_by": "session 12 (idle in transaction): SELECT ?",
    "tables": {"jobs_delivery": (9, 10**6)},
    "notify_queue": 0.2,
    "connections": 85,
    "max_connections": 100,
}


@pytest.mark.parametrize(
    ("change", "alarm"),
    [
        ({}, None),
        ({"held": 11 * MINUTE}, "horizon-held"),
        ({"held": None}, None),
        ({"tables": {"jobs_delivery": (9, 1_000_001)}}, "dead-rows"),
        ({"tables": {"jobs_delivery": (2_000_000, 1_000_001)}}, None),  # fewer than live ones
        ({"notify_queue": 0.3}, "notify-queue-filling"),
        ({"connections": 86}, "connections-short"),
    ],
)
def test_the_database_is_judged(change: dict[str, Any], alarm: str | None) -> None:
    found = list(rules.judge_server(ServerFacts(**{**WELL, **change}), LIMITS))
    assert [c.alarm for c in found] == ([alarm] if alarm else [])
    assert all("session 12" in c.summary for c in found if c.alarm == "horizon-held")
