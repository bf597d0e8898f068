"""Many workers and publishers at once, with failures, silent crashes and pauses past the lease; then history is read.

The checker prints what it counted: inversions, duplicates and lost must be 0, refused zombie acks must not be.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from jobs import queue
from jobs.apply import Application
from jobs.errors import TransientError
from jobs.frontier import Frontier
from jobs.lanes import claim_from
from jobs.messages import Message, NewMessage
from jobs.models import DeadLetter, Subscription
from jobs.outbox import publish
from jobs.queue import Look
from jobs.subscriptions import load_routes
from tests.jobs import routes
from tests.jobs.conftest import rows

WORKERS, PUBLISHERS, MESSAGES, KEYS = 8, 4, 1_600, 24
LEASE = timedelta(milliseconds=150)
DEADLINE = 90


class UngatedFrontier(Frontier):
    """The planted bug: the oldest id seen becomes the mark at once, whoever may still commit below it."""

    def learn(self, partition: queue.Partition, look: Look, *, claimed: int, **_: object) -> bool:
        if look.first is not None:
            self._state(partition).mark = look.first
        return claimed > 0


def publisher(seed: int, count: int) -> None:
    """Publishes the next number of a random key, holding that key's row lock; sometimes commits late."""
    source = random.Random(seed)
    for _ in range(count):
        key = f"k{source.randrange(KEYS)}"
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("UPDATE test_key SET seq = seq + 1 WHERE key = %s RETURNING seq", [key])
            seq = cursor.fetchone()[0]
            publish([NewMessage("thing.happened", key, {"seq": seq})])
            if source.random() < 0.15:
                time.sleep(source.random() * 0.03)
    connection.close()


def worker(seed: int, frontier: Frontier, done: Callable[[], bool], counts: Counter[str]) -> None:
    """Claims and settles; now and then crashes silently, or sleeps past its lease and then goes on."""
    source = random.Random(seed)
    route = load_routes()["strict"]
    subscription = Subscription.objects.get(name="strict").pk

    def handler(messages: Sequence[Message]) -> None:
        if source.random() < 0.10:
            raise TransientError("now and then")
        routes.record_effects(messages)

    while not done():
        partition = (subscription, source.randrange(route.partitions))
        claim, _ = claim_from(frontier, partition, route, route.batch)
        if not claim.messages:
            time.sleep(0.002)
            continue
        fate = source.random()
        if fate < 0.03:
            counts["crashes"] += 1
            continue
        if fate < 0.12:
            time.sleep(LEASE.total_seconds() * 1.4)
            held = {m.id for m in claim.messages}
            still = {i for (i,) in rows("SELECT id FROM jobs_delivery WHERE lease_token = %s", claim.token)}
            counts["zombie acks refused"] += len(held - still)
        Application(route, handler, claim, done).run()
        counts["settled"] += 1
    connection.close()


def run_history(settings: Any, make_frontier: Callable[[], Frontier]) -> dict[str, int]:
    settings.VISIBILITY_TIMEOUT = LEASE
    settings.RETRY_BACKOFF_BASE = timedelta(milliseconds=20)
    settings.MAX_RECEIVES = 1_000  # crashes and pauses are frequent here; what is tested is order, not burial
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS test_key")
        cursor.execute("CREATE TABLE test_key (key text PRIMARY KEY, seq int NOT NULL DEFAULT 0)")
        cursor.execute("INSERT INTO test_key (key) SELECT 'k' || i FROM generate_series(0, %s) i", [KEYS - 1])
    finished = threading.Event()
    counts: Counter[str] = Counter()
    frontiers = [make_frontier() for _ in range(WORKERS)]
    workers = [
        threading.Thread(target=worker, args=(1_000 + n, frontiers[n], finished.is_set, counts)) for n in range(WORKERS)
    ]
    publishers = [threading.Thread(target=publisher, args=(n, MESSAGES // PUBLISHERS)) for n in range(PUBLISHERS)]
    for thread in workers + publishers:
        thread.start()
    for thread in publishers:
        thread.join()
    deadline = time.monotonic() + DEADLINE
    strict = Subscription.objects.get(name="strict").pk
    left = "SELECT count(*) FROM jobs_delivery WHERE subscription_id = %s"
    while rows(left, strict)[0][0] and time.monotonic() < deadline:
        time.sleep(0.05)
    finished.set()
    for thread in workers:
        thread.join()
    (history,) = rows(
        "SELECT (SELECT count(*) FROM jobs_message), count(*), count(*) - count(DISTINCT event_id),"
        " (SELECT count(*) FROM jobs_message m WHERE NOT EXISTS"
        "    (SELECT FROM test_effect e WHERE e.event_id = m.event_id)),"
        " (SELECT count(*) FROM (SELECT seq, lag(seq) OVER (PARTITION BY key ORDER BY id) AS before"
        "    FROM test_effect) steps WHERE before > seq) FROM test_effect"
    )
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE test_key")
    names = ("published", "effects", "duplicates", "lost", "inversions")
    return {**dict(zip(names, history, strict=True)), **counts}


@pytest.mark.django_db(transaction=True)
def test_every_keys_effects_are_in_publication_order_once_and_none_is_lost(queue_db: None, settings: Any) -> None:
    history = run_history(settings, Frontier)
    print(history)
    assert history["published"] == MESSAGES
    assert (history["duplicates"], history["lost"], history["inversions"]) == (0, 0, 0)
    assert history["zombie acks refused"] > 0
    assert not DeadLetter.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("make_frontier", "in_order"), [(Frontier, True), (UngatedFrontier, False)])
def test_a_mark_that_believes_its_first_look_overtakes_a_late_commit(
    queue_db: None, make_frontier: Callable[[], Frontier], in_order: bool
) -> None:
    """A draws a low id for key k and commits late; meanwhile others commit and are handled; then k goes on.

    The gated mark keeps k's order; the planted bug must be seen by this test, or it tests nothing.
    """
    route = load_routes()["strict"]
    subscription = Subscription.objects.get(name="strict").pk
    Subscription.objects.update(partitions=1)
    partition, frontier = (subscription, 0), make_frontier()
    drawn, commit = threading.Event(), threading.Event()

    def send(key: str, seq: int) -> None:
        with transaction.atomic():
            publish([NewMessage("thing.happened", key, {"seq": seq})])

    def publish_late() -> None:
        with transaction.atomic():
            publish([NewMessage("thing.happened", "k", {"seq": 1})])
            drawn.set()
            commit.wait(30)
        connection.close()

    def handle() -> None:
        claim, _ = claim_from(frontier, partition, route, route.batch)
        if claim.messages:
            Application(route, routes.record_effects, claim, lambda: False).run()

    late = threading.Thread(target=publish_late)
    late.start()
    assert drawn.wait(30)
    for seq in range(3):
        send("other", seq)
        handle()
    commit.set()
    late.join()
    send("k", 2)
    for _ in range(4):
        handle()
    seen = [seq for key, seq in rows("SELECT key, seq FROM test_effect ORDER BY id") if key == "k"]
    assert (seen == [1, 2]) is in_order
