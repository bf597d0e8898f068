"""A redrive at its barest: one delivery more. jobs.queue.redrive asks the ledger first; it must hold without that."""

from __future__ import annotations

from django.db import connection

# A new delivery of the message, for the subscription that buried it: a new id, so that no worker's low-water mark has
# passed it; a receive count of its own; the ledger as it is. `writer` gives the transaction its id before the
# delivery has one, as a publisher's does. The dead letter stays.
REDRIVE = """
WITH writer AS MATERIALIZED (SELECT pg_current_xact_id() AS xid),
routed AS (
    SELECT s.id AS subscription_id, s.partitions, l.message_id, l.published_at, l.event_id, l.receive_count,
           CASE s.salt WHEN 1 THEN l.key ELSE l.key || '#' || l.message_id %% s.salt END AS key
    FROM writer, jobs_deadletter l JOIN jobs_subscription s ON s.name = l.subscription_name
    WHERE l.id = %(letter)s
)
INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)
SELECT subscription_id, abs(hashtextextended(key, 0) %% partitions), message_id, published_at, event_id, key
FROM routed
RETURNING id
"""


def redrive(letter: int) -> int:
    """Offer a dead letter's message to its subscription again; the id of its new delivery."""
    with connection.cursor() as cursor:
        cursor.execute(REDRIVE, {"letter": letter})
        return int(cursor.fetchone()[0])
