"""What an operator does to a subscription while the system runs."""

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from jobs import catalog, control, queue
from jobs.apply import Application
from jobs.frontier import Frontier
from jobs.lanes import claim_from
from jobs.messages import Message, NewMessage
from jobs.models import Delivery, JobRun, PastDelivery, ProcessedMessage, Subscription
from jobs.outbox import publish
from jobs.subscriptions import load_routes
from jobs.worker import drain
from tests.jobs import routes
from tests.jobs.conftest import effects, rows


def subscription(name: str = "strict") -> Subscription:
    return Subscription.objects.get(name=name)


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("subscriptions", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def in_order(key: str) -> bool:
    seen = [seq for k, seq in rows("SELECT key, seq FROM test_effect ORDER BY id") if k == key]
    return seen == sorted(seen)


def test_the_command_shows_each_subscription_with_its_depth_and_age(send: Any) -> None:
    send("a", "b")
    lines = run().splitlines()
    (strict,) = [line for line in lines if line.startswith("strict")]
    assert "active" in strict
    assert "2 waiting" in strict
    assert "oldest" in strict


def test_what_nobody_subscribes_to_is_counted(send: Any) -> None:
    send("a", "b", type_="thing.ignored")
    assert "2 messages of type thing.ignored in the last day have no subscription" in run()


def test_pause_and_resume_by_command(send: Any) -> None:
    ids = send("a", type_="do_loosely")
    assert "paused" in run("pause", "loose")
    drain(["loose"])
    assert effects() == []
    run("resume", "loose")
    drain(["loose"])
    assert effects() == ids


def test_an_unknown_name_and_an_impossible_value_are_refused_in_words(queue_db: None) -> None:
    with pytest.raises(CommandError, match="No such subscription: nonsense"):
        run("pause", "nonsense")
    with pytest.raises(CommandError, match="batch: must be above 0"):
        run("limit", "strict", "--batch", "0")
    with pytest.raises(CommandError, match="partitions: must be between 1 and 1024"):
        run("repartition", "strict", "0")


def test_a_smaller_batch_takes_effect_without_a_restart_and_is_lifted_again(send: Any) -> None:
    sizes: list[int] = []
    routes.before_effect.append(lambda messages: sizes.append(len(messages)))
    send(*["a"] * 9, type_="do_loosely")
    run("limit", "loose", "--batch", "2")
    drain(["loose"])
    assert max(sizes) == 2
    run("limit", "loose", "--batch", "route")
    sizes.clear()
    send(*["a"] * 9, type_="do_loosely")
    drain(["loose"])
    assert max(sizes) == 9


def test_a_rate_is_held_over_all_workers(send: Any) -> None:
    """A bucket of one second's worth: two claims in the same moment get it once between them."""
    send(*["a"] * 50, type_="do_loosely")
    control.limit(name="loose", rate_per_second=4.0)
    controls = queue.controls()[subscription("loose").pk]
    claimed, began = 0, time.monotonic()
    for _ in range(6):
        for part in range(2):
            claim, _again = claim_from(
                Frontier(), (subscription("loose").pk, part), load_routes()["loose"], 20, controls
            )
            claimed += len(claim.messages)
    assert 4 <= claimed <= 4 + 4 * (time.monotonic() - began)


def test_a_delayed_message_waits_and_its_key_waits_behind_it(send: Any) -> None:
    with transaction.atomic():
        publish([NewMessage("thing.happened", "a", {"seq": 1})], delay=timedelta(hours=1))
    send("a", "b")
    drain(["strict"])
    assert rows("SELECT key FROM test_effect") == [("b",)]


def test_raising_the_partitions_moves_the_backlog_and_keeps_every_keys_order(send: Any) -> None:
    send(*["a", "b", "c", "d", "e"] * 10)
    before = {part for (part,) in Delivery.objects.filter(subscription=subscription()).values_list("part")}
    (claim,) = [
        c
        for part in before
        if (c := queue.claim((subscription().pk, part), ordered=True, batch=3, window=100)).messages
    ][:1]
    assert "50 waiting deliveries moved" in run("repartition", "strict", "32")
    assert Application(load_routes()["strict"], routes.record_effects, claim, lambda: False).run() == 0, "fenced off"
    assert not Delivery.objects.filter(subscription=subscription()).exclude(lease_token=None, receive_count=0).exists()
    send(*["a", "b", "c", "d", "e"] * 10)
    parts = {part for (part,) in Delivery.objects.filter(subscription=subscription()).values_list("part")}
    assert max(parts) >= 4
    drain(["strict"])
    assert len(effects()) == 100
    assert all(in_order(key) for key in "abcde")


def test_a_publisher_in_the_middle_of_its_transaction_is_waited_for_and_one_that_comes_waits(send: Any) -> None:
    """Each key lives in one partition whatever happens around the change: nobody writes by the old number after it."""
    wrote, commit = threading.Event(), threading.Event()

    def publish_slowly() -> None:
        with transaction.atomic():
            publish([NewMessage("thing.happened", "a", {"seq": 1})])
            wrote.set()
            commit.wait(30)
        connection.close()

    def repartition() -> None:
        control.repartition(name="strict", partitions=64)
        connection.close()

    def publish_meanwhile() -> None:
        with transaction.atomic():
            publish([NewMessage("thing.happened", "a", {"seq": 2})])
        connection.close()

    def waits_for_lock(count: int) -> bool:
        return rows("SELECT count(*) FROM pg_locks WHERE relation = 'jobs_delivery'::regclass AND NOT granted") == [
            (count,)
        ]

    threads = [threading.Thread(target=publish_slowly)]
    threads[0].start()
    assert wrote.wait(30)
    for count, target in enumerate((repartition, publish_meanwhile), 1):
        threads.append(threading.Thread(target=target))
        threads[-1].start()
        deadline = time.monotonic() + 30
        while not waits_for_lock(count):
            assert time.monotonic() < deadline
    commit.set()
    for thread in threads:
        thread.join()
    found = rows("SELECT DISTINCT part FROM jobs_delivery WHERE subscription_id = %s", subscription().pk)
    assert len(found) == 1
    drain(["strict"])
    assert in_order("a")
    assert len(effects()) == 2


def test_a_frontier_that_has_moved_on_still_finds_what_was_moved_into_its_partition(send: Any) -> None:
    frontier, route, pk = Frontier(), load_routes()["strict"], subscription().pk
    deadline = time.monotonic() + 60
    while not any(frontier.mark((pk, part)) for part in range(4)):  # transactions elsewhere may hold the marks back
        assert time.monotonic() < deadline
        send(*"abcdefghijklmnop")
        for part in range(4):
            claim, _again = claim_from(frontier, (pk, part), route, 100)
            if claim.messages:
                Application(route, routes.record_effects, claim, lambda: False).run()
    send(*"abcdefghijklmnop")
    control.repartition(name="strict", partitions=2)
    for part in range(2):
        claim, _again = claim_from(frontier, (pk, part), route, 100)
        Application(route, routes.record_effects, claim, lambda: False).run()
    assert not Delivery.objects.filter(subscription_id=pk).exists()


def test_salting_spreads_one_hot_key_and_each_message_still_counts_once(send: Any) -> None:
    """For a consumer whose effects commute: a counter is right in any order."""
    Subscription.objects.filter(name="strict").update(salt=4)
    send(*["hot"] * 40)
    keys = {key for (key,) in Delivery.objects.filter(subscription=subscription()).values_list("key")}
    assert keys == {"hot#0", "hot#1", "hot#2", "hot#3"}
    stuck = rows("SELECT event_id FROM jobs_delivery WHERE key = 'hot#0' ORDER BY id LIMIT 1")[0][0]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_delivery SET visible_at = clock_timestamp() + interval '1 hour' WHERE event_id = %s"
            " AND subscription_id = %s",
            [stuck, subscription().pk],
        )
    drain(["strict"])
    assert len(effects()) == 30, "a failing message holds up a quarter of its key"


def test_a_replay_queues_what_the_log_holds_and_was_not_applied_before_what_came_meanwhile(send: Any) -> None:
    since = timezone.now()
    ids = send("a", "b", "a")
    Delivery.objects.filter(subscription=subscription("second")).delete()  # as if it had been declared only now
    ProcessedMessage.objects.create(consumer_name="second", event_id=ids[1], processed_at=since)

    def publish_during(queued: int) -> None:
        send("a")

    assert control.replay(name="second", since=since, progress=publish_during) == 2
    drain(["second"])
    assert effects()[:2] == [ids[0], ids[2]]
    assert len(effects()) >= 3
    assert in_order("a")
    assert subscription("second").paused_at is None


def test_a_replay_over_a_backlog_is_refused_and_leaves_it_running(send: Any) -> None:
    send("a")
    with pytest.raises(CommandError, match="strict has 1 deliveries waiting"):
        run("replay", "strict", "--since", "2026-01-01T00:00Z")
    assert subscription().paused_at is None


def test_one_subscriptions_backlog_and_failures_stall_no_other(send: Any) -> None:
    def only_second(messages: Sequence[Message]) -> None:
        raise RuntimeError("strict is broken")

    send("a")
    control.pause(name="strict")
    drain()
    assert ProcessedMessage.objects.filter(consumer_name="second").count() == 1
    routes.before_effect.append(only_second)
    assert Delivery.objects.filter(subscription=subscription()).count() == 1


def test_retention_removes_what_is_past_its_time_and_nothing_else(send: Any, settings: Any) -> None:
    now = timezone.now()
    with connection.cursor() as cursor:
        for days in (6, 8):
            cursor.execute(
                "INSERT INTO processed_messages VALUES ('c', %s, %s)", [f"e{days}", now - timedelta(days=days)]
            )
            PastDelivery.objects.create(
                subscription_name="c",
                event_id=f"e{days}",
                settled_at=now - timedelta(days=days),
                suppressed=False,
                receive_count=2,
                failures=[],
            )
        for days in (1, 13, 15):
            cursor.execute(
                "INSERT INTO jobs_deadletter (subscription_name, message_id, event_id, message_type, key, body,"
                " attributes, cause, error_class, reason, traceback, failures, receive_count, published_at,"
                " dead_lettered_at)"
                " VALUES ('s', 1, %s, 't', 'k', '{}', '{}', 'permanent', 'E', 'r', '', '[]', 1, now(), %s)",
                [f"d{days}", now - timedelta(days=days)],
            )
    for name in ("ledger-purge", "dead-letter-retention", "message-months"):
        call_command("run_job", name, stdout=StringIO(), stderr=StringIO())
    assert rows("SELECT event_id FROM processed_messages") == [("e6",)]
    assert rows("SELECT event_id FROM jobs_past_delivery") == [("e6",)]
    assert rows("SELECT event_id FROM jobs_deadletter ORDER BY id") == [("d1",), ("d13",)]
    assert JobRun.objects.get(job="ledger-purge").counts == {
        "ledger rows removed": 1,
        "retries removed": 1,
    }
    assert JobRun.objects.get(job="dead-letter-retention").counts == {"dead letters removed": 1}
    assert f"jobs_message_{timezone.now():%Y_%m}" in {name for (name,) in rows("SELECT relname FROM pg_class")}


def test_months_of_the_log_are_made_ahead_and_dropped_after_their_time(queue_db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE jobs_message_2020_01 PARTITION OF jobs_message"
            " FOR VALUES FROM ('2020-01-01T00:00Z') TO ('2020-02-01T00:00Z')"
        )
    assert catalog.drop_message_partitions(datetime(2020, 1, 31, tzinfo=UTC)) == []
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
            " VALUES (%s, 0, 1, '2020-01-15T00:00Z', 'evt_old', 'k')",
            [subscription().pk],
        )
    assert catalog.drop_message_partitions(datetime(2020, 2, 1, tzinfo=UTC)) == [], "one of its messages still waits"
    Delivery.objects.all().delete()
    assert catalog.drop_message_partitions(datetime(2020, 2, 1, tzinfo=UTC)) == ["jobs_message_2020_01"]
    months = [
        name for (name,) in rows("SELECT relname FROM pg_class WHERE relname ~ '^jobs_message_[0-9_]+$' ORDER BY 1")
    ]
    today = timezone.now()
    assert f"jobs_message_{today:%Y_%m}" in months
    assert len(months) >= 4
    catalog.ensure_message_partitions()
