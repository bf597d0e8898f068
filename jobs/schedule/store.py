"""The schedule's SQL, one function per step of a slot's life: noted, begun, kept alive, ended, found dead.

Guarantee: a slot has one row (unique); a job has one run at a time (its lock); whoever lost the lock changes nothing,
because every statement of a run carries its fencing token. All times are the database's. Called by the scheduler, by
runs and by the control functions; no other module speaks SQL to jobs_job, jobs_run and jobs_lock.

Locks: a run's chunk holds its lock row FOR KEY SHARE until it commits, so that the row can be renewed meanwhile but not
taken: taking it over needs FOR UPDATE, and passes by (SKIP LOCKED) while a chunk is being committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from jobs.messages import dumps
from jobs.queue import storable
from jobs.schedule.declared import Job
from jobs.schedule.rules import Noted, Outcome


def now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        time: datetime = cursor.fetchone()[0]
        return time


# --- Jobs -------------------------------------------------------------------------------------------------------

INSERT_JOBS = """
WITH declared AS (SELECT * FROM jsonb_to_recordset(%s::jsonb) AS d (name text, cron text)),
made AS (
    INSERT INTO jobs_job (name, cron, first_seen_at, noted_until)
    SELECT name, cron, clock.now, clock.now FROM declared, (SELECT clock_timestamp() AS now) clock
    ON CONFLICT DO NOTHING RETURNING name
)
INSERT INTO jobs_lock (job, owner) SELECT name, '' FROM made ON CONFLICT DO NOTHING
"""
# A schedule that changed begins anew: what the new one would have had in the past, nobody missed. Times that are
# already noted stay noted.
FOLLOW_CODE = """
UPDATE jobs_job j
SET cron = d.cron, retired_at = NULL,
    noted_until = CASE WHEN j.cron <> d.cron OR j.retired_at IS NOT NULL
                       THEN greatest(j.noted_until, clock_timestamp()) ELSE j.noted_until END
FROM jsonb_to_recordset(%s::jsonb) AS d (name text, cron text)
WHERE j.name = d.name AND (j.cron <> d.cron OR j.retired_at IS NOT NULL)
"""
RETIRE = "UPDATE jobs_job SET retired_at = clock_timestamp() WHERE retired_at IS NULL AND name <> ALL (%s)"


def _declared(jobs: Iterable[Job]) -> str:
    return dumps([{"name": job.name, "cron": job.cron} for job in jobs])


def insert_missing_jobs(jobs: Sequence[Job]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(INSERT_JOBS, [_declared(jobs)])


def follow_code(jobs: Sequence[Job]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(FOLLOW_CODE, [_declared(jobs)])
        cursor.execute(RETIRE, [[job.name for job in jobs]])


def set_paused(job: str, *, paused: bool) -> bool:
    """Pause or resume; whether that changed anything."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_job SET paused_at = CASE WHEN %(paused)s THEN clock_timestamp() END"
            " WHERE name = %(job)s AND (paused_at IS NULL) = %(paused)s",
            {"job": job, "paused": paused},
        )
        return bool(cursor.rowcount)


# --- Noting slots -----------------------------------------------------------------------------------------------


def noted_until(jobs: Iterable[str]) -> dict[str, tuple[str, datetime]]:
    """Each job's cron and the time up to which its slots are noted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, cron, noted_until FROM jobs_job WHERE name = ANY(%s) AND retired_at IS NULL", [list(jobs)]
        )
        return {name: (expression, until) for name, expression, until in cursor.fetchall()}


@dataclass(frozen=True)
class Noting:
    """A job whose slots we alone may note until the transaction ends."""

    cron: str
    noted_until: datetime
    paused: bool
    running: datetime | None


def lock_for_noting(job: str) -> Noting | None:
    """None when another scheduler is at it, or the job is unknown or retired. In a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT cron, noted_until, paused_at IS NOT NULL,"
            " (SELECT scheduled_for FROM jobs_run r WHERE r.job = j.name AND r.outcome = 'running')"
            " FROM jobs_job j WHERE name = %s AND retired_at IS NULL FOR NO KEY UPDATE SKIP LOCKED",
            [job],
        )
        row = cursor.fetchone()
    return Noting(*row) if row else None


NOTE = """
INSERT INTO jobs_run (job, scheduled_for, outcome, origin, reason, ended_at, counts, earlier, error_class, asked_by,
                      owner, attempt)
SELECT %(job)s, n.slot, n.outcome, n.origin, n.reason, CASE WHEN n.outcome <> 'waiting' THEN clock_timestamp() END,
       '{}', '[]', '', '', '', 0
FROM jsonb_to_recordset(%(noted)s::jsonb) AS n (slot timestamptz, outcome text, origin text, reason text)
ON CONFLICT (job, scheduled_for) DO NOTHING
"""
# What still waits gives way to a later slot: never begun, it was missed; begun before, it ends as it last ended.
SUPERSEDE = """
UPDATE jobs_run
SET ended_at = clock_timestamp(),
    outcome = CASE WHEN attempt = 0 THEN 'missed' ELSE earlier -> -1 ->> 'outcome' END,
    started_at = CASE WHEN attempt > 0 THEN (earlier -> -1 ->> 'started_at')::timestamptz END,
    error_class = CASE WHEN attempt = 0 THEN '' ELSE earlier -> -1 ->> 'error_class' END,
    reason = CASE WHEN attempt = 0 THEN %(reason)s ELSE (earlier -> -1 ->> 'reason') || '; ' || %(reason)s END
WHERE job = %(job)s AND outcome = 'waiting' AND origin <> 'by_hand' AND scheduled_for < %(before)s
"""


def write_noted(job: str, noted: Sequence[Noted], *, until: datetime) -> int:
    """Write the slots' rows, and that all up to `until` are noted; how many were new. In lock_for_noting's lock."""
    rows = [{"slot": n.slot.isoformat(), "outcome": n.outcome, "origin": n.origin, "reason": n.reason} for n in noted]
    with connection.cursor() as cursor:
        cursor.execute(NOTE, {"job": job, "noted": dumps(rows)})
        written = int(cursor.rowcount)
        cursor.execute(
            "UPDATE jobs_job SET noted_until = greatest(noted_until, %s) WHERE name = %s",
            [until, job],
        )
    return written


def supersede_waiting(job: str, *, before: datetime) -> int:
    reason = f"{before:%Y-%m-%d %H:%M} UTC came first"
    with connection.cursor() as cursor:
        cursor.execute(SUPERSEDE, {"job": job, "before": before, "reason": reason})
        return int(cursor.rowcount)


# --- Beginning --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claimed:
    """A run that is ours: we hold its job's lock under this token."""

    run_id: int
    job: str
    scheduled_for: datetime
    attempt: int
    token: int


def due_jobs(jobs: Iterable[str]) -> list[str]:
    """Which of these jobs have a run that may begin and a lock that is free."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT l.job FROM jobs_lock l WHERE l.job = ANY(%s) AND l.token IS NULL AND EXISTS"
            " (SELECT FROM jobs_run r WHERE r.job = l.job AND r.outcome = 'waiting' AND r.due_at <= clock_timestamp())"
            " ORDER BY l.job",
            [list(jobs)],
        )
        return [job for (job,) in cursor.fetchall()]


# The lock row is held before the run is chosen, by a statement of its own: so its snapshot shows what the holder before
# us did with the run.
LOCK_IF_FREE = "SELECT 1 FROM jobs_lock WHERE job = %s AND token IS NULL FOR UPDATE SKIP LOCKED"
BEGIN = """
WITH chosen AS MATERIALIZED (
    SELECT id FROM jobs_run WHERE job = %(job)s AND {which} LIMIT 1 FOR UPDATE
),
taken AS (
    UPDATE jobs_lock
    SET token = nextval('jobs_lock_token'), owner = %(owner)s, run_id = chosen.id, taken_at = clock_timestamp(),
        expires_at = clock_timestamp() + %(ttl)s * interval '1 second'
    FROM chosen WHERE job = %(job)s RETURNING token, owner
)
UPDATE jobs_run r
SET outcome = 'running', token = taken.token, owner = taken.owner, attempt = attempt + 1,
    started_at = clock_timestamp(), ended_at = NULL, reason = '', error_class = '',
    done = NULL, total = NULL, counts = '{{}}'
FROM chosen, taken WHERE r.id = chosen.id
RETURNING r.id, r.job, r.scheduled_for, r.attempt, r.token
"""
BEGIN_DUE = BEGIN.format(which="outcome = 'waiting' AND due_at <= clock_timestamp() ORDER BY scheduled_for")
BEGIN_SLOT = BEGIN.format(which="outcome = 'waiting' AND scheduled_for = %(slot)s")


def begin_due(job: Job, *, owner: str) -> Claimed | None:
    """Take the job's lock and begin its earliest run that may; None when there is none, or the lock is not free."""
    return _begin(BEGIN_DUE, job, owner, {})


def begin_asked(job: Job, slot: datetime, *, owner: str, by: str) -> Claimed | None:
    """Begin this very slot, whatever became of it before; None when the lock is not free."""
    return _begin(BEGIN_SLOT, job, owner, {"slot": slot}, before=lambda: ask(job.name, [slot], by=by))


def _begin(
    sql: str, job: Job, owner: str, more: dict[str, Any], before: Callable[[], object] = lambda: None
) -> Claimed | None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK_IF_FREE, [job.name])
        if not cursor.fetchone():
            return None
        before()
        cursor.execute(sql, {"job": job.name, "owner": owner, "ttl": job.lock_ttl.total_seconds(), **more})
        row = cursor.fetchone()
    return Claimed(*row) if row else None


def claimed(run_id: int, token: int) -> Claimed | None:
    """A run that another process of ours began for us; None when it is no longer ours."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, job, scheduled_for, attempt, token FROM jobs_run WHERE id = %s AND token = %s", [run_id, token]
        )
        row = cursor.fetchone()
    return Claimed(*row) if row else None


def holder(job: str) -> tuple[str, datetime] | None:
    """Who runs this job now, and which slot."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT l.owner, r.scheduled_for FROM jobs_lock l JOIN jobs_run r ON r.id = l.run_id WHERE l.job = %s",
            [job],
        )
        row: tuple[str, datetime] | None = cursor.fetchone()
        return row


# By hand: a row for the slot if it has none, and a new start if it has ended. One that runs or waits is left alone.
ASK = """
INSERT INTO jobs_run AS r (job, scheduled_for, outcome, origin, asked_by, reason, counts, earlier, error_class, owner,
                           attempt)
SELECT %(job)s, slot, 'waiting', 'by_hand', %(by)s, '', '{}', '[]', '', '', 0
FROM unnest(%(slots)s::timestamptz[]) AS slot
ON CONFLICT (job, scheduled_for) DO UPDATE
SET outcome = 'waiting', origin = 'by_hand', asked_by = excluded.asked_by, due_at = clock_timestamp(), attempt = 0,
    reason = '', error_class = '', started_at = NULL, ended_at = NULL, owner = '',
    earlier = CASE WHEN r.started_at IS NULL THEN r.earlier ELSE r.earlier || jsonb_build_object(
        'attempt', r.attempt, 'started_at', r.started_at, 'ended_at', r.ended_at, 'outcome', r.outcome,
        'error_class', r.error_class, 'reason', r.reason) END
WHERE r.ended_at IS NOT NULL
"""


def ask(job: str, slots: Sequence[datetime], *, by: str) -> int:
    """Have these slots run, again if they ran before; how many of them were not under way already."""
    with connection.cursor() as cursor:
        cursor.execute(ASK, {"job": job, "slots": list(slots), "by": by})
        return int(cursor.rowcount)


# --- While it runs ----------------------------------------------------------------------------------------------

# The time limits hold for the rest of the transaction: a chunk that hangs is ended by the server, and the lock with it.
HOLD = """
SELECT set_config('statement_timeout', %(limit)s, true),
       set_config('idle_in_transaction_session_timeout', %(idle)s, true)
FROM jobs_lock WHERE job = %(job)s AND token = %(token)s FOR KEY SHARE
"""


def hold(claimed: Claimed, *, limit: timedelta, idle: timedelta) -> bool:
    """First in a chunk's transaction: whether the lock is ours, which then nobody can take until it ends."""
    with connection.cursor() as cursor:
        cursor.execute(HOLD, {"job": claimed.job, "token": claimed.token, "limit": _ms(limit), "idle": _ms(idle)})
        return cursor.fetchone() is not None


def _ms(time: timedelta) -> str:
    return f"{max(int(time.total_seconds() * 1000), 1)}ms"


def renew(claimed: Claimed, *, ttl: timedelta) -> bool:
    """Show a sign of life; whether the lock is still ours."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_lock SET expires_at = clock_timestamp() + %s * interval '1 second'"
            " WHERE job = %s AND token = %s",
            [ttl.total_seconds(), claimed.job, claimed.token],
        )
        return bool(cursor.rowcount)


def write_progress(claimed: Claimed, *, done: int, total: int | None, counts: Mapping[str, Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_run SET done = %s, total = %s, counts = %s::jsonb WHERE id = %s AND token = %s",
            [done, total, dumps(counts), claimed.run_id, claimed.token],
        )
        return bool(cursor.rowcount)


# --- Ending -----------------------------------------------------------------------------------------------------

# Frees the lock and writes the ending in one statement. {held} says whose lock it may be.
END = """
WITH freed AS (
    UPDATE jobs_lock SET token = NULL, owner = '', run_id = NULL, taken_at = NULL, expires_at = NULL
    WHERE job = %(job)s AND token = %(token)s RETURNING job
)
UPDATE jobs_run r SET token = NULL, {what}
FROM freed WHERE r.id = %(run)s AND r.token = %(token)s
"""
FINISH = END.format(
    what="outcome = %(outcome)s, ended_at = clock_timestamp(), error_class = %(error_class)s, reason = %(reason)s"
)
GIVE_BACK = END.format(
    what="outcome = 'waiting', started_at = NULL, attempt = attempt - %(uncharged)s,"
    " due_at = clock_timestamp() + %(delay)s * interval '1 second',"
    " earlier = CASE WHEN %(uncharged)s > 0 THEN earlier ELSE earlier || jsonb_build_object('attempt', attempt,"
    " 'started_at', started_at, 'ended_at', clock_timestamp(), 'outcome', %(outcome)s::text,"
    " 'error_class', %(error_class)s::text, 'reason', %(reason)s::text) END"
)


def finish(claimed: Claimed, outcome: Outcome, *, error_class: str = "", reason: str = "") -> bool:
    """Write how the run ended and free the lock; whether it was still ours."""
    return _end(FINISH, claimed, {"outcome": outcome, "error_class": error_class, "reason": reason})


def give_back(
    claimed: Claimed,
    outcome: Outcome,
    *,
    error_class: str = "",
    reason: str = "",
    delay: float = 0,
    charged: bool = True,
) -> bool:
    """Let the slot wait for another attempt, `delay` seconds from now; whether it was still ours.

    Uncharged: the attempt was stopped and does not count. Otherwise it is kept among the earlier ones.
    """
    kept = {"outcome": outcome, "error_class": error_class, "reason": reason}
    return _end(GIVE_BACK, claimed, kept | {"delay": delay, "uncharged": 0 if charged else 1})


def _end(sql: str, claimed: Claimed, values: dict[str, Any]) -> bool:
    parameters = {"job": claimed.job, "token": claimed.token, "run": claimed.run_id, **storable(values)}
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return bool(cursor.rowcount)


EXPIRED = """
SELECT r.id, r.job, r.scheduled_for, r.attempt, l.token
FROM jobs_lock l JOIN jobs_run r ON r.id = l.run_id
WHERE l.job = ANY(%s) AND l.expires_at <= clock_timestamp()
FOR UPDATE OF l SKIP LOCKED
"""


def lock_expired(jobs: Iterable[str]) -> list[Claimed]:
    """Runs whose holder fell silent, their locks held until the transaction ends: end them with finish or give_back."""
    with connection.cursor() as cursor:
        cursor.execute(EXPIRED, [list(jobs)])
        return [Claimed(*row) for row in cursor.fetchall()]


def next_due(jobs: Iterable[str]) -> float | None:
    """Seconds until the next waiting run may begin."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM min(due_at) - clock_timestamp())::float8 FROM jobs_run"
            " WHERE outcome = 'waiting' AND job = ANY(%s) AND due_at > clock_timestamp()",
            [list(jobs)],
        )
        seconds: float | None = cursor.fetchone()[0]
        return seconds


# --- Processes and retention ------------------------------------------------------------------------------------

BEAT = """
INSERT INTO jobs_process (kind, owner, started_at, beat_at, facts, number)
VALUES (%s, %s, clock_timestamp(), clock_timestamp(), %s, %s)
ON CONFLICT (kind, owner) DO UPDATE SET beat_at = excluded.beat_at, facts = excluded.facts, number = excluded.number
RETURNING extract(epoch FROM beat_at)::float8
"""
SIGN_ON = """
INSERT INTO jobs_process (kind, owner, started_at, beat_at, number)
VALUES (%s, %s, clock_timestamp(), clock_timestamp(), nextval('jobs_process_number'))
ON CONFLICT (kind, owner) DO UPDATE SET
    started_at = excluded.started_at, beat_at = excluded.beat_at, number = excluded.number
RETURNING number
"""


def sign_on(kind: str, owner: str) -> int:
    """Show up under a number that no other process has, and none had for millions of them."""
    with connection.cursor() as cursor:
        cursor.execute(SIGN_ON, [kind, owner])
        return int(cursor.fetchone()[0])


def beat(kind: str, owner: str, facts: Mapping[str, Any] | None = None, number: int | None = None) -> float:
    """Show a sign of life, with what there is to say; the database's time, in seconds since 1970."""
    with connection.cursor() as cursor:
        cursor.execute(BEAT, [kind, owner, dumps(facts or {}), number])
        return float(cursor.fetchone()[0])


def heartbeats() -> list[tuple[str, datetime, datetime | None, datetime | None, datetime | None]]:
    """Of each job: its name, since when it is known, paused, when it last completed, since when it runs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT j.name, j.first_seen_at, j.paused_at, ran.ended_at, running.started_at FROM jobs_job j"
            " LEFT JOIN LATERAL (SELECT ended_at FROM jobs_run r WHERE r.job = j.name AND r.outcome = 'ran'"
            "   ORDER BY ended_at DESC LIMIT 1) ran ON true"
            " LEFT JOIN jobs_run running ON running.job = j.name AND running.outcome = 'running'"
            " WHERE j.retired_at IS NULL ORDER BY j.name"
        )
        return list(cursor.fetchall())


def sign_off(kind: str, owner: str) -> None:
    """An orderly end: nobody need miss this process."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_process WHERE kind = %s AND owner = %s", [kind, owner])


def purge_runs(older_than: datetime, *, batch: int) -> int:
    """Delete up to `batch` ended runs noted before this; how many went. Each job's last success stays."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM jobs_run WHERE id = ANY(ARRAY(SELECT id FROM jobs_run r WHERE ended_at < %s AND NOT (r.id ="
            " (SELECT id FROM jobs_run l WHERE l.job = r.job AND l.outcome = 'ran' ORDER BY ended_at DESC LIMIT 1)"
            " AND outcome = 'ran') ORDER BY id LIMIT %s))",
            [older_than, batch],
        )
        return int(cursor.rowcount)


def purge_processes(older_than: datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_process WHERE beat_at < %s", [older_than])
        return int(cursor.rowcount)
