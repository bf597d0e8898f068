"""The database server: its version, its clock, whether what it acknowledges is kept, and whether it keeps up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection

from winecellar.deployment.doctor.finding import Finding, fail, ok, warn

OLDEST_MAJOR = 15
# A connection in so many of those allowed is taken: the next deployment, or the next page, finds none.
CONNECTIONS_WARN = 0.8

QUEUE = "jobs_delivery"
# Stages of catalogue files are filled once, read once and dropped.
VACUUM_OFF = """
SELECT relname FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT starts_with(relname, 'pricing_stage_')
  AND reloptions::text ~ 'autovacuum_enabled=(off|false|0)' ORDER BY 1
"""
VACUUMED_OFTEN = """
SELECT coalesce(reloptions::text ~ 'autovacuum_vacuum_scale_factor', false) FROM pg_class
WHERE relname = %s
"""


def ask(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def setting(name: str) -> str:
    return str(ask("SELECT current_setting(%s)", name)[0][0])


def version() -> Iterator[Finding]:
    major = int(setting("server_version_num")) // 10_000
    if major < OLDEST_MAJOR:
        yield fail("database-version", f"This is Postgres {major}.", f"Upgrade to {OLDEST_MAJOR} or later.")
    else:
        yield ok("database-version", f"Postgres {major}")


def clock() -> Iterator[Finding]:
    before = datetime.now(UTC)
    (there,) = ask("SELECT clock_timestamp()")[0]
    after = datetime.now(UTC)
    apart = max(before - there, there - after)  # what the way there and back explains is no difference
    if apart > settings.DOCTOR_CLOCK_DIFFERENCE:
        said = f"This host's clock and the database's are {apart.total_seconds():.1f} s apart."
        yield fail("clock", said, "Run a time service (chrony, systemd-timesyncd) on both.")
    else:
        yield ok("clock", f"within {settings.DOCTOR_CLOCK_DIFFERENCE.total_seconds():.0f} s of the database's")


def durability() -> Iterator[Finding]:
    off = [name for name in ("fsync", "full_page_writes", "synchronous_commit") if setting(name) == "off"]
    if off:
        said = f"{' and '.join(off)} {'is' if len(off) == 1 else 'are'} off: a price that was acknowledged can be lost."
        yield fail(
            "durability", said, "Turn it on in postgresql.conf, and look at ALTER ROLE … SET and ALTER DATABASE … SET."
        )
    elif setting("synchronous_standby_names") and not ask(
        "SELECT FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
    ):
        said = "synchronous_standby_names is set and no such standby is connected: every commit waits."
        yield fail("durability", said, "Bring a standby back, or take its name out (see docs/replicas.md).")
    else:
        yield ok("durability", "what is acknowledged is on disk")


def connections() -> Iterator[Finding]:
    most = int(setting("max_connections"))
    (taken,) = ask("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")[0]
    if taken >= CONNECTIONS_WARN * most:
        said = f"{taken} of {most} connections are taken."
        yield warn(
            "connections", said, "Fewer web threads, a pooler, or more connections: docs/sizing.md reckons them."
        )
    else:
        yield ok("connections", f"{taken} of {most} are taken")


def autovacuum() -> Iterator[Finding]:
    if setting("autovacuum") == "off" or setting("track_counts") == "off":
        yield fail("autovacuum", "autovacuum is off: the queue's table grows and claims slow down.", "Turn it on.")
        return
    off = ask(VACUUM_OFF)
    for (table,) in off:
        yield fail("autovacuum", f"autovacuum is off for {table}.", f"ALTER TABLE {table} RESET (autovacuum_enabled)")
    ((tuned,),) = ask(VACUUMED_OFTEN, QUEUE)
    if not tuned:
        do = f"ALTER TABLE {QUEUE} SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)"
        yield warn("autovacuum", f"{QUEUE} is vacuumed as any table, not as a queue.", do)
    if not off and tuned:
        yield ok("autovacuum", "on, and often for the queue")
