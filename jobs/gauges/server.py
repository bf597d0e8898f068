"""What the database says of itself: who holds the horizon, dead rows, notifications, replicas, connections. Reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection

from jobs.gauges.figures import masked

# Whoever keeps VACUUM from removing dead rows: a session with an old snapshot or an open write, a prepared transaction,
# a replication slot. Sessions are known by their pid; of the other two there is no age but in transactions.
HORIZON = """
SELECT * FROM (
    SELECT 'session' AS kind, pid, coalesce(application_name, '') AS name, coalesce(state, '') AS state,
           clock_timestamp() - xact_start AS held, greatest(age(backend_xmin), age(backend_xid)) AS xids, query
    FROM pg_stat_activity
    WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND pid <> pg_backend_pid()
      AND backend_type IN ('client backend', 'walsender') AND xact_start IS NOT NULL
      AND (datname = current_database() OR backend_type = 'walsender')
    UNION ALL
    SELECT 'prepared transaction', NULL, gid, 'prepared', clock_timestamp() - prepared, age(transaction), ''
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT 'replication slot', active_pid, slot_name, CASE WHEN active THEN 'active' ELSE 'inactive' END, NULL,
           greatest(age(xmin), age(catalog_xmin)), ''
    FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
) holder ORDER BY held DESC NULLS LAST, xids DESC LIMIT 1
"""
TABLES = """
SELECT relname, n_live_tup, n_dead_tup, extract(epoch FROM clock_timestamp() - greatest(last_vacuum, last_autovacuum))
FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname = ANY(%s) ORDER BY n_dead_tup DESC, relname
"""
REST = """
SELECT pg_notification_queue_usage(), (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       current_setting('max_connections')::int,
       (SELECT count(*) FROM pg_stat_activity
        WHERE state LIKE 'idle in transaction%' AND datname = current_database()),
       pg_is_in_recovery()
"""
REPLICAS = """
SELECT coalesce(nullif(application_name, ''), host(client_addr), pid::text),
       coalesce(extract(epoch FROM replay_lag), 0),
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)
FROM pg_stat_replication ORDER BY 1
"""


@dataclass(frozen=True)
class Holder:
    """Who holds the horizon. Of a replication slot only `xids` is known, so `held` is None. `query` is masked."""

    kind: str
    pid: int | None
    name: str
    state: str
    held: timedelta | None
    xids: int
    query: str

    def __str__(self) -> str:
        who = f"{self.kind} {self.pid}" if self.pid else f"{self.kind} {self.name}"
        return f"{who} ({self.state}): {self.query}" if self.query else f"{who} ({self.state})"


@dataclass(frozen=True)
class Table:
    name: str
    live: int
    dead: int
    vacuumed_seconds_ago: float | None


@dataclass(frozen=True)
class Replica:
    name: str
    lag_seconds: float
    lag_bytes: int


@dataclass(frozen=True)
class Server:
    horizon: Holder | None
    tables: list[Table]
    notify_queue: float  # the share of it that is full
    connections: int
    max_connections: int
    idle_in_transaction: int
    replicas: list[Replica]


def look() -> Server:
    with connection.cursor() as cursor:
        cursor.execute(HORIZON)
        row = cursor.fetchone()
        horizon = _holder(*row) if row else None
        cursor.execute(TABLES, [settings.HOT_TABLES])
        tables = [Table(name, live, dead, None if ago is None else float(ago)) for name, live, dead, ago in cursor]
        cursor.execute(REST)
        usage, connections, most, idle, is_standby = cursor.fetchone()
        replicas = []
        if not is_standby:
            cursor.execute(REPLICAS)
            replicas = [Replica(name, float(lag), int(size)) for name, lag, size in cursor.fetchall()]
    return Server(horizon, tables, float(usage), connections, most, idle, replicas)


def _holder(
    kind: str, pid: int | None, name: str, state: str, held: timedelta | None, xids: int | None, query: str | None
) -> Holder:
    return Holder(kind, pid, name, state, held, xids or 0, masked(query or ""))
