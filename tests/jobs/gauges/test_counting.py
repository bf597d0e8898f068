"""What is counted, by whom, and what a crash, a lag or an absence does to it."""

import dataclasses
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from jobs import control, queue
from jobs.errors import PermanentError, TransientError
from jobs.gauges import census, reporter, store
from jobs.gauges.reading import Reading, read
from jobs.gauges.tally import tally
from jobs.models import Minute, Occurrence, Process, Sampler, Subscription
from jobs.schedule import store as schedule
from jobs.worker import Worker, drain
from tests.jobs import routes
from tests.jobs.conftest import rows
from tests.jobs.gauges.conftest import pass_time
from tests.processes.conftest import wait_until

MINUTE = timedelta(minutes=1)
Count = Callable[[], Reading]


def test_every_partition_is_counted_in_each_state_of_its_deliveries(send: Any, counting: Count) -> None:
    ids = send("a", "a", "a", "a", "a", "a")
    strict = Subscription.objects.get(name="strict")
    (part,) = {row[0] for row in rows("SELECT part FROM jobs_delivery WHERE subscription_id = %s", strict.pk)}
    change = "UPDATE jobs_delivery SET {} WHERE subscription_id = %s AND event_id = %s"
    later = "visible_at = clock_timestamp() + interval '1 hour'"
    received = "receive_count = 2, first_received_at = clock_timestamp()"
    with connection.cursor() as cursor:
        cursor.execute(change.format(f"{later}, lease_token = 1, {received}"), [strict.pk, ids[0]])
        cursor.execute(change.format(f"lease_token = 1, {received}"), [strict.pk, ids[1]])
        cursor.execute(change.format(f"{later}, {received}"), [strict.pk, ids[2]])
        cursor.execute(change.format(later), [strict.pk, ids[3]])
    s = counting().subscription("strict")
    assert len(s.partitions) == strict.partitions, "the empty ones too"
    counted = s.partitions[part].counted
    assert counted[2:8] == (6, 1, 1, 1, 1, 2), "depth, in flight, suspect, retrying, delayed, unreceived"
    assert counted.most_receives == 2
    assert s.depth == 6
    assert sum(p.depth for p in s.partitions if p.part != part) == 0


def test_age_is_from_publication_whatever_happens_to_a_message_and_a_wanted_delay_is_no_wait(
    send: Any, counting: Count
) -> None:
    send("a")
    pass_time(6 * MINUTE)
    with connection.cursor() as cursor:  # a channel's next try, published to be handled an hour later
        cursor.execute("UPDATE jobs_delivery SET visible_at = clock_timestamp() + interval '1 minute'")
    worst = counting().subscription("strict").worst
    assert worst.age >= 6 * MINUTE
    assert worst.waiting == timedelta(0), "it is not to be handled yet"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_delivery SET visible_at = clock_timestamp() - interval '1 minute'")
    assert MINUTE <= counting().subscription("strict").worst.waiting < 2 * MINUTE
    routes.before_effect.append(lambda messages: (_ for _ in ()).throw(TransientError("not yet")))
    drain(["strict"])
    worst = counting().subscription("strict").worst
    assert worst.counted.retrying == 1
    assert worst.age >= 6 * MINUTE, "a receive resets nothing"


def test_rates_windows_and_errors_are_what_the_workers_did(send: Any, counting: Count) -> None:
    reporter.tell({})  # the process hears the database's time
    _, bad = send("a", "b")
    routes.before_effect.append(
        lambda messages: [None for m in messages if m.event_id == bad and _raise(PermanentError("never"))]
    )
    drain(["strict"])
    reporter.tell_counts()
    s = counting().subscription("strict")
    flows = [p.flows for p in s.partitions]
    assert sum(f.received for f in flows) == 2
    assert sum(f.acked for f in flows) == 1
    assert sum(f.buried for f in flows) == 1
    assert s.errors == {"PermanentError": 1}
    assert sum(s.dead) == 1
    assert s.receives_per_ack == 2
    window = s.window(0.5)
    assert window is not None
    assert 0 < window < 60
    assert s.completing == pytest.approx(2 / s.partitions[0].minutes)


def test_effects_outside_are_counted_as_they_are_settled(send: Any, counting: Count) -> None:
    send("a", "b", type_="do_outside")
    routes.perform_with.append(lambda task: _raise(PermanentError("never")) if task["seq"] == 2 else None)
    drain(["outside"])
    reporter.tell_counts()
    flows = [p.flows for p in counting().subscription("outside").partitions]
    assert [sum(getattr(f, what) for f in flows) for what in ("received", "acked", "buried")] == [2, 1, 1]


def test_what_newer_code_publishes_is_said_by_its_type_while_it_is_put_back(send: Any, counting: Count) -> None:
    Subscription.objects.filter(name="strict").update(message_types=["thing.happened", "thing.renamed"])
    send("a", type_="thing.renamed")
    drain(["strict"])
    reporter.tell_counts()
    assert counting().subscription("strict").unknown_types == {"thing.renamed": 1}


def _raise(error: Exception) -> None:
    raise error


def test_what_a_process_did_not_tell_before_it_died_is_missing_and_what_it_could_not_tell_is_not(
    send: Any, counting: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    send("a", "b", "c")
    drain(["strict"])
    real = store.add
    monkeypatch.setattr(store, "add", lambda counts: _raise(OperationalError("away")))
    with pytest.raises(OperationalError):
        reporter.tell_counts()
    monkeypatch.setattr(store, "add", real)
    reporter.tell_counts()
    reporter.tell_counts()
    assert sum(p.flows.acked for p in counting().subscription("strict").partitions) == 3, "told late, and once"
    send("d")
    drain(["strict"])
    tally.take()  # it dies here
    reporter.tell_counts()
    assert sum(p.flows.acked for p in counting().subscription("strict").partitions) == 3, "one is not counted"
    assert counting().subscription("strict").depth == 0, "which no gauge of what waits depends on"


def test_who_is_cut_off_while_it_tells_its_counts_holds_up_nobody_elses_for_long(send: Any, counting: Count) -> None:
    """Its transaction is open, its network gone: the server would keep its rows locked for hours."""
    written, over = threading.Event(), threading.Event()

    def is_cut_off(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if sql == store.ADD_FLOWS:
            written.set()
            over.wait(60)
        return result

    def tell(counts: Any) -> None:
        try:
            with connection.execute_wrapper(is_cut_off):
                store.add(counts)
        except OperationalError:
            pass  # the server has ended it
        finally:
            connection.close()

    send("a")
    drain(["strict"])
    counts = tally.take()
    counts_again = dataclasses.replace(counts)
    lost = threading.Thread(target=tell, args=(counts,))
    lost.start()
    assert written.wait(20)
    store.add(counts_again)  # the same partition in the same minute: it waits for the other
    assert not over.is_set()
    over.set()
    lost.join(20)
    assert sum(p.flows.acked for p in counting().subscription("strict").partitions) == 1


def test_arrivals_are_counted_from_the_log_for_each_partition_once(send: Any, counting: Count) -> None:
    send("a", "a", "b")
    send("x", type_="nobody.listens")
    pass_time(2 * MINUTE)
    counting()
    reading = counting()
    s = reading.subscription("strict")
    by_part = dict(rows("SELECT part, count(*) FROM jobs_delivery d WHERE subscription_id = %s GROUP BY 1",
                        s.partitions[0].counted.subscription))  # fmt: skip
    assert {p.part: p.flows.arrived for p in s.partitions if p.flows.arrived} == by_part
    assert sum(p.flows.arrived for p in reading.subscription("second").partitions) == 3
    assert reading.unsubscribed == {"nobody.listens": 1}
    assert reading.subscription("loose").pause is None


def test_a_publisher_that_commits_late_is_counted(send: Any, counting: Count) -> None:
    """It published before the count and committed after it: the count waits for whoever writes, for a minute."""
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    parameters.pop("context", None)
    with psycopg.connect(**parameters) as other:
        other.execute(
            "INSERT INTO jobs_message (event_id, type, key, body) VALUES ('evt_late', 'thing.happened', 'a', '{}')"
        )
        at = other.execute("SELECT published_at FROM jobs_message WHERE event_id = 'evt_late'").fetchone()
        assert at
        wait_until(lambda: schedule.now() > at[0] + timedelta(seconds=1.1), what="its moment is past")
        assert sum(p.flows.arrived for p in counting().subscription("strict").partitions) == 0
        other.commit()
    assert sum(p.flows.arrived for p in counting().subscription("strict").partitions) == 1


def test_without_a_watchman_whoever_reads_counts(send: Any, counting: Count, settings: Any) -> None:
    send("a")
    assert counting().is_sampled
    Sampler.objects.update(counted_at=schedule.now() - 10 * MINUTE)
    send("b")
    reading = read(schedule.now())
    assert not reading.is_sampled
    assert reading.subscription("strict").depth == 2
    assert Sampler.objects.get().counted_at < schedule.now() - 9 * MINUTE, "and writes nothing"


def test_a_costly_count_is_made_seldom_and_by_one_process_at_a_time(counting: Count, settings: Any) -> None:
    settings.CENSUS_SHARE = 0.01
    Sampler.objects.update(took=timedelta(seconds=1))
    assert not census.take(), "a hundred times its cost has not passed"
    Sampler.objects.update(counted_at=schedule.now() - 2 * MINUTE)
    results: list[bool] = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [census.CENSUS_LOCK])
        thread = threading.Thread(target=lambda: (results.append(census.take()), connection.close()))
        thread.start()
        thread.join()
        cursor.execute("SELECT pg_advisory_unlock(%s)", [census.CENSUS_LOCK])
    assert results == [False]
    assert census.take()


def test_a_repartitioned_subscription_has_its_new_partitions_and_no_old_ones(send: Any, counting: Count) -> None:
    send(*"abcdefgh")
    assert len(counting().subscription("strict").partitions) == 4
    control.repartition(name="strict", partitions=2)
    s = counting().subscription("strict")
    assert [p.part for p in s.partitions] == [0, 1]
    assert s.depth == 8


def test_minutes_are_kept_for_two_days(counting: Count) -> None:
    counting()
    old = schedule.now() - timedelta(hours=49)
    Minute.objects.create(minute=old, subscription_id=1, part=0, acked=1)
    Occurrence.objects.create(kind="error", minute=old, subscription_id=1, name="E", count=1)
    before = Minute.objects.count()
    store.purge(schedule.now() - timedelta(hours=48), batch=100)
    assert Minute.objects.count() == before - 1
    assert not Occurrence.objects.filter(minute=old).exists()


def test_a_worker_shows_what_it_is_at_while_a_handler_takes_long(
    send: Any, counting: Count, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.GAUGE_FLUSH_INTERVAL = timedelta(seconds=0.05)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # we are no main thread
    go, begun = threading.Event(), threading.Event()
    routes.before_effect.append(lambda messages: (begun.set(), go.wait(20)))
    (event_id,) = send("a")
    worker = Worker(["strict"])
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        assert begun.wait(20)
        batches = lambda: Process.objects.get(kind="worker").facts["batches"]  # noqa: E731
        wait_until(lambda: batches() and batches()[0]["event_id"] == event_id, what="it says what it is at")
        assert Process.objects.get(kind="worker").facts["memory_bytes"] > 10_000_000
    finally:
        go.set()
        worker._on_signal(15, None)
        thread.join(20)
    assert not Process.objects.filter(kind="worker").exists(), "an orderly end"
    assert sum(p.flows.acked for p in counting().subscription("strict").partitions) == 1, "it told the rest"


def test_the_gauges_agree_with_the_queue(send: Any, counting: Count) -> None:
    send(*"abcdefghij")
    by_gauge = {s.name: s.depth for s in counting().subscriptions}
    assert by_gauge == {d.subscription: d.waiting for d in queue.depths()}
