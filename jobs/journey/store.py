"""The SQL of journeys: what the queue knows of an event. Reads only, by an index or no further than settings say.

Deliveries are read before the ledger and the dead letters: what is settled between two statements is then seen twice,
never not at all. Called by selectors.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection

from jobs.journey.hooks import Found, Published
from jobs.journey.lanes import Queued
from jobs.messages import dumps

COLUMNS = "id, event_id, type, key, published_at, body::text, attributes::text"
MOST_MESSAGES = 20  # of one event: itself, and each time that it was re-adapted


def messages(event_id: str) -> list[Published]:
    """An event's messages in the log: one, and one for each re-adaptation."""
    return _messages("event_id = %(value)s", event_id, most=MOST_MESSAGES)


def follow_ups(event_id: str) -> list[Published]:
    """What was published because of an event, up to one more than JOURNEY_COUNTED; in no order that costs a sort."""
    return _messages("attributes ->> 'caused_by' = %(value)s", event_id, most=settings.JOURNEY_COUNTED + 1)


def of_trace(trace_id: str) -> list[Published]:
    """The messages of a trace, up to one more than JOURNEY_SHOWN."""
    return _messages(
        "substr(attributes ->> 'traceparent', 4, 32) = %(value)s AND attributes ->> 'traceparent' IS NOT NULL",
        trace_id,
        most=settings.JOURNEY_SHOWN + 1,
    )


def _messages(where: str, value: str, *, most: int) -> list[Published]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {COLUMNS} FROM jobs_message WHERE {where} LIMIT {int(most)}", {"value": value})
        rows = cursor.fetchall()
    return sorted((_published(row) for row in rows), key=lambda message: message.message_id)


def _published(row: tuple[Any, ...]) -> Published:
    id_, event_id, type_, key, published_at, body, attributes = row
    parsed = json.loads(body, parse_float=Decimal)
    return Published(
        id_, event_id, type_, key, published_at, parsed if isinstance(parsed, dict) else {}, json.loads(attributes)
    )


# The newest first, by the primary key, and no further than so many rows: no index finds these.
SOUGHT = """
SELECT event_id, name, published_at
FROM (SELECT event_id, published_at, attributes FROM jobs_message ORDER BY published_at DESC, id DESC LIMIT %(look)s)
     AS newest, unnest(%(names)s::text[]) AS name
WHERE attributes ->> name = %(value)s
ORDER BY published_at DESC LIMIT %(most)s
"""


def sought(names: Sequence[str], value: str) -> list[Found]:
    """Events among the newest messages of which one of these attributes is this."""
    with connection.cursor() as cursor:
        cursor.execute(
            SOUGHT,
            {
                "names": list(names),
                "value": value,
                "look": settings.JOURNEY_SEARCH,
                "most": settings.JOURNEY_SHOWN + 1,
            },
        )
        return [Found(event_id, f"its {name} is {value}", at) for event_id, name, at in cursor.fetchall()]


def buried(event_id: str) -> bool:
    """Whether there is a dead letter of it: what could not even be published is in no log."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM jobs_deadletter WHERE event_id = %s)", [event_id])
        return bool(cursor.fetchone()[0])


# --- What waits --------------------------------------------------------------------------------------------------

# A delivery is found by its partition, which its key says; within it no index finds a message, so the oldest are looked
# at, and whether there are more.
WAITING = """
WITH wanted AS MATERIALIZED (
    SELECT s.id AS subscription_id, s.name, abs(hashtextextended(k.key, 0) %% s.partitions)::smallint AS part, m.id,
           m.event_id
    FROM jsonb_to_recordset(%(messages)s::jsonb) AS m (id bigint, event_id text, type text, key text, only_for text)
    JOIN jobs_subscription s ON s.message_types ? m.type AND coalesce(m.only_for, s.name) = s.name
    CROSS JOIN LATERAL (SELECT CASE s.salt WHEN 1 THEN m.key ELSE m.key || '#' || m.id %% s.salt END AS key) k
),
parts AS MATERIALIZED (SELECT DISTINCT subscription_id, part FROM wanted)
SELECT wanted.name, wanted.event_id, d.id, d.visible_at, d.receive_count, d.first_received_at, d.failures::text,
       d.lease_token IS NOT NULL, d.visible_at <= clock_timestamp()
FROM parts CROSS JOIN LATERAL (
    SELECT * FROM jobs_delivery q WHERE q.subscription_id = parts.subscription_id AND q.part = parts.part
    ORDER BY q.id LIMIT %(look)s
) d JOIN wanted ON wanted.subscription_id = d.subscription_id AND wanted.part = d.part AND wanted.id = d.message_id
UNION ALL
SELECT wanted.name, wanted.event_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM wanted WHERE (wanted.subscription_id, wanted.part) IN (
    SELECT subscription_id, part FROM parts WHERE EXISTS (
        SELECT FROM jobs_delivery q WHERE q.subscription_id = parts.subscription_id AND q.part = parts.part
        ORDER BY q.id OFFSET %(look)s LIMIT 1))
ORDER BY 3
"""


def waiting(published: Sequence[Published]) -> dict[tuple[str, str], list[Queued]]:
    """Where these messages wait or are in flight: by subscription and event."""
    rows = [
        {
            "id": message.message_id,
            "event_id": message.event_id,
            "type": message.type,
            "key": message.key,
            "only_for": message.attributes.get("only_for"),
        }
        for message in published
    ]
    found = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(WAITING, {"messages": dumps(rows), "look": settings.JOURNEY_LOOK})
        for name, event_id, id_, at, count, first, failures, leased, visible in cursor.fetchall():
            queued = Queued(id_, at, count or 0, first, json.loads(failures or "[]"), bool(leased), bool(visible))
            found[name, event_id].append(queued)
    return found


def applied(consumers: Sequence[str], event_ids: Sequence[str]) -> dict[tuple[str, str], datetime]:
    """When these consumers applied these events, as far as the ledger knows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT consumer_name, event_id, processed_at FROM processed_messages"
            " WHERE consumer_name = ANY(%s) AND event_id = ANY(%s)",
            [list(consumers), list(event_ids)],
        )
        return {(consumer, event_id): at for consumer, event_id, at in cursor.fetchall()}
