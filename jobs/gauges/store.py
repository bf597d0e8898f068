"""The SQL of what the gauges remember: told by workers, read over minutes, forgotten after settings.GAUGE_RETENTION.

Called by the reporter, the readings and the retention; census.py fills the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from jobs.gauges.figures import Flows, Pause, Point
from jobs.gauges.tally import Counts
from jobs.messages import dumps
from jobs.queue import storable

SLOT = timedelta(minutes=5)  # arrivals are noted by it, so that a day of them is quickly read

# In the order of the key, so that two workers never wait for each other crosswise.
ADD_FLOWS = """
INSERT INTO jobs_minute AS m (minute, subscription_id, part, received, acked, retried, buried)
SELECT date_trunc('minute', at.now), r.subscription, r.part, r.received, r.acked, r.retried, r.buried
FROM (SELECT statement_timestamp() AS now) at, jsonb_to_recordset(%s::jsonb)
  AS r (subscription smallint, part smallint, received bigint, acked bigint, retried bigint, buried bigint)
ORDER BY 2, 3
ON CONFLICT (minute, subscription_id, part) DO UPDATE SET
    received = m.received + excluded.received, acked = m.acked + excluded.acked,
    retried = m.retried + excluded.retried, buried = m.buried + excluded.buried
"""
ADD_OCCURRENCES = """
INSERT INTO jobs_occurrence AS o (kind, minute, subscription_id, name, count)
SELECT r.kind, date_trunc('minute', at.now), r.subscription, r.name, r.count
FROM (SELECT statement_timestamp() AS now) at, jsonb_to_recordset(%s::jsonb)
  AS r (kind text, subscription smallint, name text, count bigint)
ORDER BY 1, 2, 3, 4
ON CONFLICT (kind, minute, subscription_id, name) DO UPDATE SET count = o.count + excluded.count
"""


def briefly(cursor: Any) -> None:
    """For a transaction whose rows everybody's counts go to: the server ends it soon after who began it is cut off."""
    limit = f"{settings.GAUGE_SILENT_LIMIT.total_seconds():.0f}s"
    cursor.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, true)", [limit])


def add(counts: Counts) -> None:
    """Add what a process counted, all of it or nothing. A crash of the server may forget the last moments of it."""
    flows = [
        {
            "subscription": s,
            "part": p,
            "received": f.received,
            "acked": f.acked,
            "retried": f.retried,
            "buried": f.buried,
        }
        for (s, p), f in counts.flows.items()
    ]
    occurred = [
        storable({"kind": kind, "subscription": subscription, "name": name, "count": count})
        for (kind, subscription, name), count in counts.occurred.items()
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        briefly(cursor)
        cursor.execute("SET LOCAL synchronous_commit = off")
        if flows:
            cursor.execute(ADD_FLOWS, [dumps(flows)])
        if occurred:
            cursor.execute(ADD_OCCURRENCES, [dumps(occurred)])


def flows(since: datetime) -> dict[tuple[int, int], Flows]:
    """What came and went in each partition since then."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT subscription_id, part, sum(arrived)::bigint, sum(received)::bigint, sum(acked)::bigint,"
            " sum(retried)::bigint, sum(buried)::bigint FROM jobs_minute WHERE minute >= %s GROUP BY 1, 2",
            [since],
        )
        return {(row[0], row[1]): Flows(*row[2:]) for row in cursor.fetchall()}


OCCURRED = "SELECT kind, subscription_id, name, sum(count)::bigint FROM jobs_occurrence WHERE {kinds} GROUP BY 1, 2, 3"


def occurrences(kinds: Mapping[str, datetime]) -> dict[tuple[str, int], dict[str, int]]:
    """Of each kind, since its own time: by kind and subscription, how often under which name.

    The times stand in the statement, so that the planner knows how few rows they leave. One scan for all kinds: for a
    UNION of them it starts parallel workers, which takes five times as long as reading the rows.
    """
    found: dict[tuple[str, int], dict[str, int]] = {}
    with connection.cursor() as cursor:
        each = " OR ".join(["(kind = %s AND minute >= %s)"] * len(kinds))
        cursor.execute(OCCURRED.format(kinds=each), [part for pair in kinds.items() for part in pair])
        for kind, subscription, name, count in cursor.fetchall():
            found.setdefault((kind, subscription), {})[name] = count
    return found


def pauses(since: datetime) -> dict[int, Pause]:
    """How regularly each subscription's messages came: its last arrival, its longest pause before, how many slots."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT subscription_id, max(minute), coalesce(max(gap), '0'), count(*) FROM ("
            "  SELECT subscription_id, minute, minute - lag(minute) OVER (PARTITION BY subscription_id ORDER BY minute)"
            "  AS gap FROM jobs_occurrence WHERE kind = 'arrived' AND minute >= %s) slot GROUP BY 1",
            [since],
        )
        return {row[0]: Pause(*row[1:]) for row in cursor.fetchall()}


def history(since: datetime) -> list[Point]:
    """Each subscription's minutes since then, oldest first: the depth of all its partitions, the worst one's wait."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT subscription_id, minute, sum(depth)::bigint, max(due_seconds), sum(arrived)::bigint,"
            " sum(acked)::bigint FROM jobs_minute WHERE minute >= %s GROUP BY 1, 2 ORDER BY 1, 2",
            [since],
        )
        return [Point(*row) for row in cursor.fetchall()]


def purge(older_than: datetime, *, batch: int) -> int:
    """Delete up to `batch` rows older than this; how many went. Call until it is 0."""
    gone = 0
    with connection.cursor() as cursor:
        for table in ("jobs_minute", "jobs_occurrence"):
            cursor.execute(
                f"DELETE FROM {table} WHERE ctid = ANY(ARRAY("  # noqa: S608  (our own names)
                f"SELECT ctid FROM {table} WHERE minute < %s LIMIT %s FOR UPDATE SKIP LOCKED))",
                [older_than, batch],
            )
            gone += cursor.rowcount
    return gone
