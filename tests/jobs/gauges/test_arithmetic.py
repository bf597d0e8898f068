"""The gauges' arithmetic: buckets, quantiles, drain times, hot partitions, masked statements, what a process counts."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.gauges import buckets, words
from jobs.gauges.figures import GROWING, Counted, Flows, Partition, Subscription, drain_time, masked
from jobs.gauges.tally import APPLIED, ERROR, TIMED, Tally
from jobs.messages import Message

NOW = datetime(2026, 3, 14, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@given(st.floats(0, 100_000, allow_nan=False))
def test_a_duration_lies_below_its_buckets_bound_and_above_the_one_before(seconds: float) -> None:
    number = buckets.bucket(seconds)
    assert seconds <= buckets.bound(number) * (1 + 1e-6)
    assert number == 0 or seconds > buckets.bound(number - 1) * (1 - 1e-6)


@given(st.lists(st.floats(0.001, 1_000), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_at_most_a_fifth_above_the_true_one(durations: list[float], share: float) -> None:
    counts: dict[int, int] = {}
    for seconds in durations:
        counts[buckets.bucket(seconds)] = counts.get(buckets.bucket(seconds), 0) + 1
    # The true one: the smallest that so large a share does not exceed.
    true = next(d for n, d in enumerate(sorted(durations), 1) if n >= share * len(durations))
    told = buckets.quantile(counts, share)
    assert told is not None
    assert true * (1 - 1e-6) <= told <= true * 1.1893


def test_nothing_has_no_quantile() -> None:
    assert buckets.quantile({}, 0.5) is None


@pytest.mark.parametrize(
    ("depth", "arriving", "completing", "time"),
    [
        (0, 100, 0, timedelta(0)),  # nothing waits
        (600, 100, 400, 2 * MINUTE),
        (1, 0, 0, GROWING),  # nobody works
        (10, 5, 5, GROWING),  # as much comes as goes
        (10, 6, 5, GROWING),
        (10**12, 0, 1e-6, GROWING),  # a time beyond any calendar
    ],
)
def test_a_drain_time_is_depth_by_what_is_gained_a_minute(
    depth: int, arriving: float, completing: float, time: timedelta
) -> None:
    assert drain_time(depth, arriving=arriving, completing=completing) == time


def partition(part: int, *, depth: int = 0, waits: timedelta = timedelta(0), **counted: int) -> Partition:
    since = NOW - waits if depth else None
    fields = {"in_flight": 0, "suspect": 0, "retrying": 0, "delayed": 0, "unreceived": depth, "most_receives": 0}
    row = Counted(1, part, depth, **{**fields, **counted}, oldest=since, oldest_unreceived=since, due=since)
    return Partition(row, Flows(), 5.0, NOW)


def of(*partitions: Partition) -> Subscription:
    return Subscription("s", True, 5 * MINUTE, None, partitions)


def test_a_hot_partition_is_one_that_waits_or_holds_a_multiple_of_the_middle_one() -> None:
    idle = [partition(n) for n in range(1, 16)]
    late, deep = partition(0, depth=3, waits=40 * MINUTE), partition(0, depth=1_000, waits=timedelta(seconds=1))
    assert of(late, *idle).is_hot(late)
    assert of(deep, *idle).is_hot(deep)
    alike = [partition(n, depth=100, waits=40 * MINUTE) for n in range(16)]
    assert not any(of(*alike).is_hot(p) for p in alike), "all are late: that is no hot partition"
    assert not of(late).is_hot(late), "the only one is not hotter than others"
    little = partition(0, depth=90, waits=timedelta(seconds=4))
    assert not of(little, *idle).is_hot(little), "what is done in seconds is not hot"


def test_a_subscription_is_as_late_as_its_worst_partition_and_drains_as_slowly() -> None:
    row = partition(3, depth=5, waits=40 * MINUTE)
    s = of(*[partition(n) for n in range(3)], row)
    assert (s.worst.part, s.worst.waiting, s.age, s.lag) == (3, 40 * MINUTE, 40 * MINUTE, 40 * MINUTE)
    assert s.drains_in == GROWING
    shares = {"warn_share": 0.5, "page_share": 0.8}
    assert words.state(s, **shares) == words.State(words.Level.PAGE, "late")
    assert words.state(of(partition(0, depth=1, waits=3 * MINUTE)), **shares).level is words.Level.WARN
    assert words.state(of(partition(0)), **shares) == words.State(words.Level.FINE, "idle")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("SELECT 'alice@example.com', 12", "SELECT ?, ?"),
        ("SELECT E'it''s\n', -1.5e3, a1 FROM t_2 WHERE x = $1", "SELECT ?, -?, a1 FROM t_2 WHERE x = $1"),
        ("SELECT $body$alice$body$, $$bob$$", "SELECT ?, ?"),
        ("INSERT INTO t VALUES ('a secret that the server cut of", "INSERT INTO t VALUES (?"),
        ("", ""),
    ],
)
def test_a_statement_is_shown_without_its_values(query: str, shown: str) -> None:
    assert masked(query) == shown


def test_a_long_statement_is_shortened() -> None:
    assert len(masked("SELECT " + "a, " * 1_000)) == 200


def message(published_at: datetime) -> Message:
    return Message(1, 1, "evt_1", "t", "k", "{}", None, published_at.isoformat(), 1)


def test_ages_are_by_the_databases_clock_and_few_of_a_batch_stand_for_all() -> None:
    tally = Tally()
    tally.applied((1, 0), [message(NOW)])
    assert not tally.take().occurred, "its clock was not heard yet, so no age is made up"
    tally.heard_time(NOW.timestamp(), asked_at=time.monotonic())  # whatever this host believes the time to be
    tally.applied((1, 0), [message(NOW - timedelta(seconds=100))] * 500 + [message(NOW)])
    counts = tally.take()
    ages = {int(name): count for (kind, _, name), count in counts.occurred.items() if kind == APPLIED}
    assert sum(ages.values()) == 501
    assert len(ages) <= TIMED
    assert buckets.quantile(ages, 0.5) == pytest.approx(100, rel=0.2)
    assert counts.flows[1, 0].acked == 501


def test_what_could_not_be_told_is_given_back_and_added_to_what_came_since() -> None:
    tally = Tally()
    tally.received((1, 0), 20)
    tally.failed((1, 0), "KeyError", buried=False)
    taken = tally.take()
    tally.received((1, 0), 5)
    tally.failed((1, 0), "KeyError", buried=True)
    tally.give_back(taken)
    counts = tally.take()
    flow = counts.flows[1, 0]
    assert (flow.received, flow.retried, flow.buried) == (25, 1, 1)
    assert counts.occurred[ERROR, 1, "KeyError"] == 2
    assert not tally.take(), "taken is taken"
