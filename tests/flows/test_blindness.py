"""Each gauge is blind to something. Five situations, each built for real: which gauge sees it, and which see nothing.

Whoever watches one figure (depth, a mean, a rate of errors) is told nothing in at least one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from statistics import mean
from typing import Any

import psycopg
import pytest
from django.db import connection

from jobs import control
from jobs.alarms import evaluation
from jobs.errors import TransientError
from jobs.gauges import reporter
from jobs.gauges.figures import GROWING
from jobs.gauges.reading import Reading
from jobs.worker import drain
from tests.jobs import routes
from tests.jobs.conftest import queue_db, send
from tests.jobs.gauges.conftest import counting, pass_time

__all__ = ["counting", "queue_db", "send"]
pytestmark = pytest.mark.publishes_malformed_events  # the queue's own tests' events, which have no schema
MINUTE = timedelta(minutes=1)
NONE = timedelta(0)
Count = Callable[[], Reading]


def alarms(reading: Reading) -> set[str]:
    return {condition.alarm for condition in evaluation.of_queue(reading)}


def test_a_stopped_consumer(send: Any, counting: Count) -> None:
    """Age, lag and drain time see it. No error, no retry and no dead letter comes of it, and arrivals look healthy."""
    send(*"abcdefghijklmnop")
    pass_time(4 * MINUTE)
    s = counting().subscription("strict")
    assert s.worst.waiting >= 4 * MINUTE
    assert s.lag >= 4 * MINUTE
    assert s.drains_in == GROWING
    assert {"queue-behind", "queue-late"} <= alarms(counting())
    # Blind:
    assert s.errors == {}
    assert s.receives_per_ack is None
    assert s.total("retrying") + s.total("in_flight") == 0
    assert sum(s.dead) == 0
    assert s.arriving > 0
    assert s.window(0.99) is None, "nothing is applied, so nothing is applied late"


def test_one_poison_message_that_cycles(send: Any, counting: Count) -> None:
    """Age sees it, and what comes back. Depth is 1, nothing is behind, rates and percentiles are those of the rest."""
    reporter.tell({})
    (poison,) = send("p")
    routes.before_effect.append(
        lambda messages: [None for m in messages if m.event_id == poison and _fail(TransientError("try again"))]
    )
    drain(["strict", "second"])
    pass_time(40 * MINUTE)
    send(*[f"k{n}" for n in range(40)])
    drain(["strict", "second"])
    reporter.tell_counts()
    reading = counting()
    s = reading.subscription("strict")
    assert s.age >= 40 * MINUTE
    assert s.worst.is_cycling
    assert "message-cycling" in alarms(reading)
    # Blind:
    assert s.depth == 1
    assert s.lag == NONE
    assert s.total("unreceived") == 0
    assert s.window(0.99) is not None
    assert s.window(0.99) < 60  # type: ignore[operator]
    assert s.receives_per_ack is not None
    assert s.receives_per_ack < 1.1
    assert sum(s.dead) == 0
    assert "queue-growing" not in alarms(reading)


def _fail(error: Exception) -> None:
    raise error


def test_one_partition_forty_minutes_behind_among_idle_ones(send: Any, counting: Count) -> None:
    """Its own age sees it, and its own drain time. Every mean, sum and percentile over the subscription is fine."""
    control.repartition(name="strict", partitions=16)
    reporter.tell({})
    send("hot", "hot", "hot")
    pass_time(40 * MINUTE)
    drain(["second"])
    with connection.cursor() as cursor:  # somebody holds them, and does nothing
        cursor.execute("UPDATE jobs_delivery SET lease_token = nextval('jobs_lease_token'), receive_count = 1,"
                       " visible_at = clock_timestamp() + interval '30 s' WHERE key = 'hot'")  # fmt: skip
    keys = [f"k{n}" for n in range(400)]
    send(*keys)
    drain(["strict", "second"])
    reporter.tell_counts()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_delivery SET lease_token = NULL, receive_count = 0,"
                       " visible_at = published_at WHERE key = 'hot'")  # fmt: skip
    reading = counting()
    s = reading.subscription("strict")
    (hot,) = [p for p in s.partitions if s.is_hot(p)]
    assert hot.waiting >= 40 * MINUTE
    assert {"queue-late", "partition-hot"} <= alarms(reading)
    # Blind:
    waits = [p.waiting.total_seconds() for each in reading.subscriptions for p in each.partitions]
    assert mean(waits) < 0.5 * 5 * 60, "the mean over all partitions is below every threshold"
    assert s.depth == 3
    assert s.window(0.99) is not None
    assert s.window(0.99) < 60  # type: ignore[operator]
    assert s.completing > s.arriving, "in all, more goes than comes"
    assert s.receives_per_ack == 1
    assert s.errors == {}


def test_a_producer_that_stopped_with_an_empty_queue(counting: Count) -> None:
    """Only the time since the last arrival sees it: depth, age, lag, drain time and errors are those of a good day."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_occurrence (kind, minute, subscription_id, name, count)"
            " SELECT 'arrived', date_bin('5 minutes', clock_timestamp(), timestamptz '2000-01-01Z') - n * interval"
            " '5 minutes', s.id, '', 100 FROM jobs_subscription s, generate_series(10, 250) n WHERE s.name = 'strict'"
        )
    reading = counting()
    s = reading.subscription("strict")
    assert s.pause is not None
    assert reading.now - s.pause.last >= 50 * MINUTE
    assert alarms(reading) == {"arrivals-stopped"}
    # Blind:
    assert (s.depth, s.age, s.lag, s.drains_in, s.worst.waiting) == (0, NONE, NONE, NONE, NONE)
    assert s.errors == {}
    # And the other subscriptions, which never had a habit, say nothing.
    assert reading.subscription("second").pause is None


def test_a_session_idle_in_a_transaction_that_holds_the_horizon(send: Any, counting: Count, settings: Any) -> None:
    """Only the database's own view sees it, and names it; the queue works on, and its gauges are content."""
    settings.HORIZON_HELD_AFTER = timedelta(hours=1)
    quiet = evaluation.facts.server(counting().server)
    assert not list(evaluation.judge_server(quiet, evaluation.facts.queue_limits()))
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    parameters.pop("context", None)
    with psycopg.connect(**parameters) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT 'alice@winecellar.example', 4417")
        send(*"abc")
        drain(["strict", "second"])
        reading = counting()
        horizon = reading.server.horizon
        assert horizon is not None
        assert (horizon.pid, horizon.state) == (holder.info.backend_pid, "idle in transaction")
        assert reading.server.idle_in_transaction == 1
        settings.HORIZON_HELD_AFTER = NONE
        facts = evaluation.facts.server(reading.server)
        (condition,) = evaluation.judge_server(facts, evaluation.facts.queue_limits())
        assert condition.alarm == "horizon-held"
        assert str(holder.info.backend_pid) in condition.summary
        assert "alice" not in condition.summary + str(horizon)
        assert "4417" not in str(horizon).replace(str(holder.info.backend_pid), "")
        # Blind:
        assert alarms(reading) == set()
        assert all(s.depth == 0 for s in reading.subscriptions)
