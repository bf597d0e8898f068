"""The SQL around the queue: subscriptions, partitions of keys and of the log, replay, retention.

Guarantee: what changes the order of deliveries (repartition, replay) does so under a lock that no publisher and no
worker passes, and gives what it moves new ids, so that nobody's low-water mark has gone by them. Called by sync,
control and retention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db import connection, transaction

from jobs.messages import dumps
from jobs.subscriptions import Route

# --- Subscriptions ----------------------------------------------------------------------------------------------

INSERT_SUBSCRIPTIONS = """
INSERT INTO jobs_subscription (name, message_types, ordered, salt, partitions)
SELECT r.name, r.message_types, r.ordered, r.salt, r.partitions
FROM jsonb_to_recordset(%s::jsonb)
  AS r (name text, message_types jsonb, ordered boolean, salt smallint, partitions smallint)
WHERE NOT EXISTS (SELECT FROM jobs_subscription s WHERE s.name = r.name)
ON CONFLICT (name) DO NOTHING
"""
UPDATE_SUBSCRIPTIONS = """
UPDATE jobs_subscription s SET message_types = r.message_types, ordered = r.ordered, salt = r.salt
FROM jsonb_to_recordset(%s::jsonb) AS r (name text, message_types jsonb, ordered boolean, salt smallint)
WHERE s.name = r.name AND (s.message_types, s.ordered, s.salt) IS DISTINCT FROM (r.message_types, r.ordered, r.salt)
"""


def _route_rows(routes: Sequence[Route]) -> str:
    return dumps(
        [
            {
                "name": r.name,
                "message_types": list(r.message_types),
                "ordered": r.ordered,
                "salt": r.salt,
                "partitions": r.partitions,
            }
            for r in routes
        ]
    )


def insert_missing_subscriptions(routes: Sequence[Route]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(INSERT_SUBSCRIPTIONS, [_route_rows(routes)])


def update_subscriptions(routes: Sequence[Route]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(UPDATE_SUBSCRIPTIONS, [_route_rows(routes)])


def subscription_ids() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, id FROM jobs_subscription")
        return dict(cursor.fetchall())


MONTHS_AHEAD = 3


def is_current() -> bool:
    """Whether the schema is as new as this code, as far as subscriptions and the log's months go."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regprocedure('jobs_make_months(integer)') IS NOT NULL")
        return bool(cursor.fetchone()[0])


def ensure_message_partitions() -> None:
    """Make the log's partitions for this month and the next ones; takes no lock where they exist."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT jobs_make_months(%s)", [MONTHS_AHEAD])


def drop_message_partitions(older_than: datetime) -> list[str]:
    """Drop the log's months that ended before this time; returns their names. Their messages are gone for good.

    A month of which a message still waits in some queue is kept, however old: what is unacked is in our custody.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT jobs_drop_months(%s)", [older_than])
        return [name for (name,) in cursor.fetchall()]


# --- Moving deliveries ------------------------------------------------------------------------------------------

# Waits for every transaction that has written deliveries, and lets none write until we commit. A statement that waits
# here takes its snapshot after us, so it sees the new state. Readers go on.
LOCK_DELIVERIES = "LOCK TABLE jobs_delivery IN SHARE ROW EXCLUSIVE MODE"
# With new ids, in the old order: the old ids may lie below a worker's mark in the partition they move to. What is in
# flight goes back uncharged; its holder's token is gone, so it can settle nothing. A suspect stays one.
MOVE_DELIVERIES = """
WITH moved AS (DELETE FROM jobs_delivery WHERE subscription_id = %(subscription)s RETURNING *)
INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key, visible_at, receive_count,
                           lease_token, first_received_at, failures)
SELECT subscription_id, abs(hashtextextended(key, 0) %% %(partitions)s), message_id, published_at, event_id, key,
       CASE WHEN in_flight THEN clock_timestamp() ELSE visible_at END,
       receive_count - CASE WHEN in_flight THEN 1 ELSE 0 END, CASE WHEN in_flight THEN NULL ELSE lease_token END,
       first_received_at, failures
FROM (SELECT *, lease_token IS NOT NULL AND visible_at > clock_timestamp() AS in_flight FROM moved) moved
ORDER BY moved.id
"""


def repartition(subscription: int, partitions: int) -> int:
    """Hash a subscription's keys into another number of partitions, its backlog included; how many deliveries moved.

    Publishers and workers wait meanwhile (about a second per 100,000 of backlog).
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK_DELIVERIES)
        cursor.execute("UPDATE jobs_subscription SET partitions = %s WHERE id = %s", [partitions, subscription])
        cursor.execute(MOVE_DELIVERIES, {"subscription": subscription, "partitions": partitions})
        return int(cursor.rowcount)


REPLAY = """
INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)
SELECT s.id, abs(hashtextextended(k.key, 0) %% s.partitions), m.id, m.published_at, m.event_id, k.key
FROM jobs_message m JOIN jobs_subscription s ON s.message_types ? m.type
CROSS JOIN LATERAL (SELECT CASE s.salt WHEN 1 THEN m.key ELSE m.key || '#' || m.id %% s.salt END AS key) k
WHERE s.id = %(subscription)s AND m.published_at >= %(since)s AND m.id > %(after)s AND m.id <= %(until)s
  AND coalesce(m.attributes ->> 'only_for', s.name) = s.name
  AND NOT EXISTS (SELECT FROM processed_messages p WHERE p.consumer_name = s.name AND p.event_id = m.event_id)
ORDER BY m.id LIMIT %(limit)s
RETURNING message_id
"""


def log_end() -> int:
    """The highest message id that any finished transaction has written, while none is writing."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK_DELIVERIES)
        cursor.execute("SELECT coalesce(max(id), 0) FROM jobs_message")
        return int(cursor.fetchone()[0])


def replay_some(subscription: int, *, since: datetime, after: int, until: int, limit: int) -> tuple[int, int]:
    """Queue the next messages of the log for a subscription; (how many, the last one's id)."""
    with connection.cursor() as cursor:
        cursor.execute(
            REPLAY,
            {"subscription": subscription, "since": since, "after": after, "until": until, "limit": limit},
        )
        ids = [row[0] for row in cursor.fetchall()]
    return len(ids), max(ids, default=until)


def waiting(subscription: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM jobs_delivery WHERE subscription_id = %s", [subscription])
        return int(cursor.fetchone()[0])


def move_behind(subscription: int) -> None:
    """Give all of a subscription's deliveries new ids in message order, so that what was replayed comes first."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK_DELIVERIES)
        cursor.execute("SELECT partitions FROM jobs_subscription WHERE id = %s", [subscription])
        (partitions,) = cursor.fetchone()
        cursor.execute(
            MOVE_DELIVERIES.replace("ORDER BY moved.id", "ORDER BY moved.message_id"),
            {"subscription": subscription, "partitions": partitions},
        )


# --- Reading the log --------------------------------------------------------------------------------------------

# What waits or is buried is left out: it has not been applied, and will be when it is handled or redriven. A letter
# that was redriven as it is has been applied; one that was re-adapted was by a message of its own, which is in the log.
APPLIED = """
CREATE TEMPORARY TABLE applied AS
SELECT m.id, m.event_id, m.key, m.body
FROM jobs_message m JOIN jobs_subscription s ON s.message_types ? m.type
WHERE s.name = %(consumer)s AND (%(keys)s::text[] IS NULL OR m.key = ANY(%(keys)s))
  AND NOT EXISTS (SELECT FROM jobs_delivery d WHERE d.subscription_id = s.id AND d.message_id = m.id)
  AND NOT EXISTS (SELECT FROM jobs_deadletter l WHERE l.subscription_name = s.name AND l.message_id = m.id
                  AND NOT (l.decision = 'redrive' AND l.outcome IN ('applied', 'older', 'suppressed')))
  AND coalesce(m.attributes ->> 'only_for', s.name) = s.name
"""


@contextmanager
def applied_messages(consumer: str, keys: Sequence[str] | None) -> Iterator[int]:
    """A temporary table `applied (id, event_id, key, body)` of what this consumer has applied of the log, as of now.

    For rebuilding a projection from it, on this connection, while the system runs: what is applied later is not in
    it, so whoever rebuilds leaves those rows alone. Yields how many messages it holds.
    """
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS applied")
        cursor.execute(APPLIED, {"consumer": consumer, "keys": None if keys is None else list(keys)})
        count = int(cursor.rowcount)
        cursor.execute("CREATE INDEX ON applied (key, id)")
        cursor.execute("ANALYZE applied")
    try:
        yield count
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS applied")


def unsubscribed(since: datetime) -> dict[str, int]:
    """Messages published since then whose type no subscription receives, counted by type. They are in the log."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT m.type, count(*) FROM jobs_message m WHERE m.published_at >= %s AND NOT EXISTS"
            " (SELECT FROM jobs_subscription s WHERE s.message_types ? m.type) GROUP BY m.type ORDER BY m.type",
            [since],
        )
        return dict(cursor.fetchall())


# --- Retention --------------------------------------------------------------------------------------------------

PURGE_LEDGER = """
DELETE FROM processed_messages WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM processed_messages WHERE processed_at < %s LIMIT %s FOR UPDATE SKIP LOCKED
))
"""


def purge_ledger(older_than: datetime, *, batch: int) -> int:
    """Delete up to `batch` ledger rows older than this; how many went. Call until it is 0."""
    with connection.cursor() as cursor:
        cursor.execute(PURGE_LEDGER, [older_than, batch])
        return int(cursor.rowcount)


def purge_past_deliveries(older_than: datetime, *, batch: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM jobs_past_delivery WHERE id = ANY(ARRAY("
            " SELECT id FROM jobs_past_delivery WHERE settled_at < %s ORDER BY settled_at LIMIT %s))",
            [older_than, batch],
        )
        return int(cursor.rowcount)


def purge_dead_letters(older_than: datetime, *, batch: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM jobs_deadletter WHERE id = ANY(ARRAY("
            " SELECT id FROM jobs_deadletter WHERE dead_lettered_at < %s ORDER BY dead_lettered_at LIMIT %s))",
            [older_than, batch],
        )
        return int(cursor.rowcount)
