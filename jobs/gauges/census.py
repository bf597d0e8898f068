"""How each partition stands, counted; and what arrived, from the log. The only SQL of the gauges on the queue's tables.

Guarantee: reads the queue and changes none of it, takes no lock that a publisher or worker could wait for, and costs
the hot path nothing. One process counts at a time; each look of the watchman asks for it. Decision 0029.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from jobs.gauges.figures import Counted
from jobs.gauges.store import briefly

# Every partition there is, the empty ones too. `due` is since when the delivery that waits longest could have been
# handled: its publication, or the end of its delay. That end is known until it is first handed out; one that was handed
# out longer after publication than is promised is taken to have been delayed (a channel's next try, hours ahead).
# `oldest` is from publication in any case, and nothing that happens to a delivery resets it.
COUNT = """
WITH at AS MATERIALIZED (SELECT clock_timestamp() AS now),
seen AS MATERIALIZED (
    SELECT subscription_id, part, count(*) AS depth,
           count(*) FILTER (WHERE lease_token IS NOT NULL AND visible_at > now) AS in_flight,
           count(*) FILTER (WHERE lease_token IS NOT NULL AND visible_at <= now) AS suspect,
           count(*) FILTER (WHERE lease_token IS NULL AND first_received_at IS NOT NULL AND visible_at > now)
               AS retrying,
           count(*) FILTER (WHERE first_received_at IS NULL AND visible_at > now) AS delayed,
           count(*) FILTER (WHERE first_received_at IS NULL AND visible_at <= now) AS unreceived,
           max(receive_count) AS most_receives,
           min(published_at) AS oldest,
           min(published_at) FILTER (WHERE first_received_at IS NULL AND visible_at <= now) AS oldest_unreceived,
           min(CASE WHEN first_received_at IS NULL THEN visible_at
                    WHEN first_received_at > published_at + %(promise)s * interval '1 second' THEN first_received_at
                    ELSE published_at END) AS due
    FROM jobs_delivery, at GROUP BY subscription_id, part
)
SELECT s.id, p.part, coalesce(depth, 0), coalesce(in_flight, 0), coalesce(suspect, 0), coalesce(retrying, 0),
       coalesce(delayed, 0), coalesce(unreceived, 0), coalesce(most_receives, 0), oldest, oldest_unreceived, due
FROM jobs_subscription s CROSS JOIN LATERAL generate_series(0, s.partitions - 1) AS p (part)
LEFT JOIN seen ON seen.subscription_id = s.id AND seen.part = p.part
"""
COLUMNS = (
    "subscription_id, part, depth, in_flight, suspect, retrying, delayed, unreceived, most_receives, oldest,"
    " oldest_unreceived, due"
)
TAKE = f"INSERT INTO jobs_census ({COLUMNS}) {COUNT}"
LAST = f"SELECT {COLUMNS} FROM jobs_census ORDER BY subscription_id, part"  # noqa: S608
KEEP = """
INSERT INTO jobs_minute AS m (minute, subscription_id, part, depth, due_seconds)
SELECT date_trunc('minute', %(at)s::timestamptz), subscription_id, part, depth,
       coalesce(greatest(extract(epoch FROM %(at)s - due), 0), 0)
FROM jobs_census ORDER BY subscription_id, part
ON CONFLICT (minute, subscription_id, part) DO UPDATE SET depth = excluded.depth, due_seconds = excluded.due_seconds
"""
CENSUS_LOCK = 0x77696E66  # any number, so that it is ours
# How far the log can be counted: what a transaction that is still open has published is seen when it commits.
UNTIL = """
SELECT clock_timestamp(), greatest(
    clock_timestamp() - %s * interval '1 second',
    least(clock_timestamp() - interval '1 second', (SELECT min(xact_start) FROM pg_stat_activity
        WHERE backend_xid IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid())))
"""
# Routed as the publishing statement does it (queue.INSERT_MESSAGES). Types are joined by hash: an index cannot help.
ARRIVED = """
WITH type_of AS MATERIALIZED (
    SELECT s.id, s.name, s.salt, s.partitions, t.type
    FROM jobs_subscription s CROSS JOIN LATERAL jsonb_array_elements_text(s.message_types) AS t (type)
),
come AS MATERIALIZED (
    SELECT date_trunc('minute', m.published_at) AS minute, m.type, t.id,
           CASE WHEN t.id IS NOT NULL THEN abs(hashtextextended(
               CASE t.salt WHEN 1 THEN m.key ELSE m.key || '#' || m.id %% t.salt END, 0) %% t.partitions) END AS part,
           count(*) AS count
    FROM jobs_message m
    LEFT JOIN type_of t ON t.type = m.type AND coalesce(m.attributes ->> 'only_for', t.name) = t.name
    WHERE m.published_at >= %(since)s AND m.published_at < %(until)s
    GROUP BY 1, 2, 3, 4
),
by_minute AS (
    INSERT INTO jobs_minute AS m (minute, subscription_id, part, arrived)
    SELECT minute, id, part, sum(count) FROM come WHERE id IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (minute, subscription_id, part) DO UPDATE SET arrived = m.arrived + excluded.arrived
)
INSERT INTO jobs_occurrence AS o (kind, minute, subscription_id, name, count)
SELECT * FROM (
    SELECT 'arrived', date_bin('5 minutes', minute, timestamptz '2000-01-01Z'), id, '', sum(count)
    FROM come WHERE id IS NOT NULL GROUP BY 1, 2, 3
    UNION ALL
    SELECT 'unsubscribed', minute, 0, type, sum(count) FROM come WHERE id IS NULL GROUP BY 1, 2, 3, 4
) occurred ORDER BY 1, 2, 3, 4
ON CONFLICT (kind, minute, subscription_id, name) DO UPDATE SET count = o.count + excluded.count
"""
# After a time without a watchman only the last of it is counted: the log of a week is not read to draw three hours.
CATCH_UP = timedelta(minutes=10)


def take() -> bool:
    """Count now and keep it, unless another process is at it or the last count's cost asks for more time between."""
    with transaction.atomic(), connection.cursor() as cursor:
        briefly(cursor)
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [CENSUS_LOCK])
        if not cursor.fetchone()[0]:
            return False
        cursor.execute("SELECT counted_at, took, arrivals_until, clock_timestamp() FROM jobs_sampler")
        last = cursor.fetchone()
        if last and last[3] - last[0] < last[1] / settings.CENSUS_SHARE:
            return False
        began = time.perf_counter()
        _count_arrivals(cursor, since=last[2] if last else None)
        cursor.execute("DELETE FROM jobs_census")
        cursor.execute(TAKE, {"promise": settings.ALERT_PROMISE.total_seconds()})
        cursor.execute("SELECT clock_timestamp()")
        (at,) = cursor.fetchone()
        cursor.execute(KEEP, {"at": at})
        took: Any = timedelta(seconds=time.perf_counter() - began)
        cursor.execute("UPDATE jobs_sampler SET counted_at = %s, took = %s", [at, took])
    return True


def _count_arrivals(cursor: Any, *, since: datetime | None) -> None:
    """Add what was published since; the first time nothing is, so that no count begins in the middle of a minute."""
    cursor.execute(UNTIL, [settings.GAUGE_LATE_COMMIT.total_seconds()])
    now, until = cursor.fetchone()
    if since is None:
        cursor.execute(
            "INSERT INTO jobs_sampler (id, counted_at, took, arrivals_until) VALUES (1, %s, '0', %s)", [now, until]
        )
        return
    since, until = max(since, now - CATCH_UP), max(since, until)
    cursor.execute(ARRIVED, {"since": since, "until": until})
    cursor.execute("UPDATE jobs_sampler SET arrivals_until = %s", [until])


def partitions() -> tuple[datetime, list[Counted], bool]:
    """Every partition, as of when, and whether as a watchman counted: else counted now, since nobody has for long."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT counted_at, took, clock_timestamp() FROM jobs_sampler")
        last = cursor.fetchone()
        if last and last[2] - last[0] <= fresh_for(last[1]):
            cursor.execute(LAST)
            return last[0], [Counted(*row) for row in cursor.fetchall()], True
    return *count(), False


def count() -> tuple[datetime, list[Counted]]:
    """Count now, whatever that costs, and keep nothing of it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
        cursor.execute(COUNT + " ORDER BY 1, 2", {"promise": settings.ALERT_PROMISE.total_seconds()})
        return now, [Counted(*row) for row in cursor.fetchall()]


def fresh_for(took: timedelta) -> timedelta:
    """How old a count may be: two looks of the watchman, or what its cost asks for and one look."""
    interval: timedelta = settings.WATCHMAN_INTERVAL
    return interval + max(interval, took / settings.CENSUS_SHARE)
