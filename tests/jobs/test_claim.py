"""The claim statement under hostile planners: never more than asked for, never out of order, never by a full scan."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from jobs import prepared, queue
from jobs.frontier import Frontier
from jobs.lanes import claim_from
from jobs.models import Subscription
from jobs.subscriptions import load_routes
from jobs.worker import drain
from tests.jobs.conftest import effects, rows

SWITCHES = ["hashjoin", "mergejoin", "nestloop", "material", "indexscan", "bitmapscan", "hashagg", "sort", "seqscan"]


def claim(batch: int, *, name: str = "strict", window: int = 1_000) -> list[str]:
    subscription = Subscription.objects.get(name=name)
    messages = []
    for part in range(subscription.partitions):
        messages += queue.claim(
            (subscription.pk, part), ordered=subscription.ordered, batch=batch, window=window
        ).messages
    return [m.event_id for m in messages]


@pytest.mark.parametrize("off", [[], *[[s] for s in SWITCHES], ["hashjoin", "mergejoin"], ["hashjoin", "nestloop"]])
def test_a_claim_takes_at_most_its_batch_whatever_the_planner_does(send: Any, off: list[str], settings: Any) -> None:
    settings.PREPARED_STATEMENTS = not off  # a prepared claim keeps the plan it got, whatever the switches say
    send(*["k"] * 50)
    with connection.cursor() as cursor:
        for switch in off:
            cursor.execute(f"SET enable_{switch} = off")
        try:
            first = claim(7)
            assert len(first) == 7
            assert claim(7) == [], "the key's first ones are in flight; its next must wait"
        finally:
            for switch in off:
                cursor.execute(f"RESET enable_{switch}")
    in_order = [e for (e,) in rows("SELECT event_id FROM jobs_message ORDER BY id LIMIT 7")]
    assert first == in_order


@pytest.mark.parametrize(
    ("how", "generic"),
    [
        *(("CLAIM_ORDERED", generic) for generic in (False, True)),
        *(("CLAIM_UNORDERED", generic) for generic in (False, True)),
        ("CLAIM_ORDERED_PAST", False),
        ("CLAIM_UNORDERED_PAST", False),
    ],
)
def test_a_claim_touches_no_more_than_its_window_at_a_hundred_thousand_rows_with_stale_statistics(
    queue_db: None, how: str, generic: bool
) -> None:
    """Planned for its parameters, and once for all of them as a prepared one is after its fifth use."""
    subscription = Subscription.objects.get(name="strict")
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH m AS (INSERT INTO jobs_message (event_id, type, key, body)"
            " SELECT 'evt_' || i, 'thing.happened', 'k' || i %% 1000, '{}' FROM generate_series(1, 100000) i"
            " RETURNING id, published_at, event_id, key)"
            " INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
            " SELECT %s, id %% 4, id, published_at, event_id, key FROM m",
            [subscription.pk],
        )
        # No ANALYZE: the planner believes what it believed of the empty tables. One key is in flight, so that the
        # longer way is taken as well.
        cursor.execute("UPDATE jobs_delivery SET lease_token = 1, receive_count = 1 WHERE part = 1 AND key = 'k1'")
        cursor.execute("UPDATE jobs_delivery SET visible_at = 'infinity' WHERE part = 1 AND key = 'k1'")
        parameters = {
            "subscription": subscription.pk,
            "part": 1,
            "mark": 0,
            "blocked": [],
            "window": 1000,
            "batch": 500,
            "lease": 30,
            "company": queue.ALONE,
            "holder": 0,
        }
        statement = getattr(queue, how)
        cursor.execute("BEGIN")
        cursor.execute(prepared.BY_INDEX)
        if generic:
            places = {name: f"${place}" for place, name in enumerate(parameters, start=1)}
            cursor.execute("PREPARE claim (bigint, int, bigint, text[], int, int, float, int) AS " + statement % places)
            statement = "EXECUTE claim (" + ", ".join(f"%({name})s" for name in parameters) + ")"
        cursor.execute("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + statement, parameters)
        plan = cursor.fetchone()[0][0]["Plan"]
        cursor.execute("COMMIT")
        if generic:
            cursor.execute("DEALLOCATE claim")
    # The other months are empty and pruned when it runs; only what is full counts.
    full = {"jobs_delivery", f"jobs_message_{timezone.now():%Y_%m}"}
    seen = {id(node): _rows_looked_at(node) for node in _nodes(plan) if node.get("Relation Name", "") in full}
    assert len(seen) >= 4, "the window, the lock, the update and the messages"
    passed_over = 100 if how == "CLAIM_UNORDERED_PAST" else 0  # the one key's deliveries in this partition
    assert max(seen.values()) <= 1000 + passed_over, json.dumps(plan, indent=1)
    assert not [node for node in _nodes(plan) if node.get("Rows Removed by Join Filter", 0) > 1000]
    assert not [node for node in _nodes(plan) if node["Node Type"] == "Seq Scan" and node["Relation Name"] in full]


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _rows_looked_at(node: dict[str, Any]) -> float:
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return (float(node["Actual Rows"]) + removed) * node["Actual Loops"]


def test_two_claims_at_once_share_nothing_and_split_no_key(send: Any) -> None:
    send(*["a", "b", "c", "d"] * 10)
    first = claim(6)
    second = claim(100)
    assert not set(first) & set(second)
    taken = dict(rows("SELECT event_id, key FROM jobs_message"))
    assert not {taken[e] for e in first} & {taken[e] for e in second}


def test_a_key_in_backoff_parks_only_itself(send: Any) -> None:
    ids = send("a", "b", "a", "b")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_delivery SET visible_at = clock_timestamp() + interval '1 hour' WHERE event_id = %s", [ids[0]]
        )
    assert sorted(claim(100)) == sorted([ids[1], ids[3]])


def fill(name: str, hot: int, others: int) -> None:
    """One partition: `hot` deliveries of one key, the first of them in backoff, then `others` of other keys."""
    Subscription.objects.filter(name=name).update(partitions=1)
    subscription = Subscription.objects.get(name=name).pk
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH m AS (INSERT INTO jobs_message (event_id, type, key, body)"
            " SELECT 'evt_' || i, 'thing.happened', CASE WHEN i <= %s THEN 'hot' ELSE 'k' || i END,"
            " jsonb_build_object('seq', i) FROM generate_series(1, %s) i RETURNING id, published_at, event_id, key)"
            " INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
            " SELECT %s, 0, id, published_at, event_id, key FROM m ORDER BY id",
            [hot, hot + others, subscription],
        )
        cursor.execute(
            "UPDATE jobs_delivery SET visible_at = clock_timestamp() + interval '1 hour' WHERE id ="
            " (SELECT min(id) FROM jobs_delivery)"
        )


def test_a_hot_key_with_a_backlog_of_a_hundred_thousand_that_waits_stops_no_other_key(queue_db: None) -> None:
    """The bound: two looks, whatever the backlog. The first finds a window full of it, the second looks past it."""
    fill("strict", hot=100_000, others=50)
    route, frontier = load_routes()["strict"], Frontier()
    partition = (Subscription.objects.get(name="strict").pk, 0)
    first, again = claim_from(frontier, partition, route, route.batch)
    assert first.messages == []
    assert again
    second, _ = claim_from(frontier, partition, route, route.batch)
    assert len(second.messages) == route.batch
    assert {m.key for m in second.messages}.isdisjoint({"hot"})


def test_a_thousand_deliveries_in_backoff_hold_up_no_other_of_an_unordered_subscription(send: Any) -> None:
    Subscription.objects.filter(name="loose").update(partitions=1)
    send(*["k"] * 1_000, type_="do_loosely")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_delivery SET visible_at = clock_timestamp() + interval '1 hour'")
    (event_id,) = send("k", type_="do_loosely")
    drain(["loose"])
    assert effects() == [event_id]


def test_a_delivery_published_with_a_low_id_but_committed_late_is_still_delivered(send: Any) -> None:
    """Reading by a cursor over ids would have passed it."""
    late, early = send("a", "b", type_="do_loosely")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE hidden AS SELECT * FROM jobs_delivery WHERE event_id = %s", [late])
        cursor.execute("DELETE FROM jobs_delivery WHERE event_id = %s", [late])
        assert claim(100, name="loose") == [early]
        cursor.execute("INSERT INTO jobs_delivery SELECT * FROM hidden")
        cursor.execute("DROP TABLE hidden")
    assert claim(100, name="loose") == [late]
