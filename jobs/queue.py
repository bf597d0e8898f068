"""The SQL of a delivery's life, one function per statement, in the order a message meets them.

Guarantee: every statement that changes a delivery in flight carries the claim's lease token, so a worker that lost
its lease changes nothing. All times are the database's (`clock_timestamp()`), never a worker's.
Called by outbox and the executors, by nobody else. What is around it (subscriptions, partitions, retention) is SQL in
catalog.py; no other module speaks SQL to these tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection
from django.db.backends.utils import CursorWrapper

from jobs import prepared
from jobs.database import by_index, pipelined, run, sqlstate
from jobs.messages import NO_TRACE, Message, NewMessage, dumps

Partition = tuple[int, int]  # (subscription id, part)
Reached = Callable[[], list[Partition]]

# --- Publishing -------------------------------------------------------------------------------------------------

# What writes messages, and one delivery of each for every subscription of its type, as parts of a WITH. `writer` runs
# first and gives the transaction its id before any message id is drawn: a low id without a visible transaction could be
# overtaken by a claim that believes it has seen all lower ones (docs/decisions/0003). {first}: ` FROM part` names the
# part of the same statement that must have locked the keys' rows, and returned one, before that.
PUBLISHING = """
writer AS MATERIALIZED (SELECT pg_current_xact_id() AS xid{first}),
message AS (
    INSERT INTO jobs_message (event_id, type, key, body, attributes)
    SELECT row.event_id, row.type, row.key, row.body, row.attributes
    FROM writer, ROWS FROM (
        jsonb_to_recordset(%(messages)s::jsonb) AS (event_id text, type text, key text, body jsonb, attributes jsonb)
    ) WITH ORDINALITY AS row (event_id, type, key, body, attributes, position)
    ORDER BY row.position
    RETURNING id, published_at, event_id, type, key
),
routed AS (
    SELECT s.id AS subscription_id, s.partitions, message.id, message.published_at, message.event_id,
           CASE s.salt WHEN 1 THEN message.key ELSE message.key || '#' || message.id %% s.salt END AS key
    FROM message JOIN jobs_subscription s ON s.message_types ? message.type
),
delivery AS (
    INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key, visible_at)
    SELECT subscription_id, abs(hashtextextended(key, 0) %% partitions), id, published_at, event_id, key,
           clock_timestamp() + %(delay)s * interval '1 second'
    FROM routed ORDER BY id
    RETURNING subscription_id, part
)
"""
REACHED = "SELECT DISTINCT subscription_id, part FROM delivery"
INSERT_MESSAGES = f"WITH {PUBLISHING.format(first='')} {REACHED}"


def publishing(
    messages: Sequence[NewMessage], *, delay: timedelta = timedelta(0), trace: Mapping[str, str] = NO_TRACE
) -> dict[str, Any]:
    """The parameters of PUBLISHING."""
    return {"messages": dumps([message.as_row(trace) for message in messages]), "delay": delay.total_seconds()}


def insert_messages(
    messages: Sequence[NewMessage], *, delay: timedelta = timedelta(0), trace: Mapping[str, str] = NO_TRACE
) -> Reached:
    """Write messages and one delivery per subscription of their type; the partitions that got any, when asked for.

    `trace` is the trace context of those that bring none.
    """
    return reached_by(run(INSERT_MESSAGES, publishing(messages, delay=delay, trace=trace)))


def reached_by(cursor: CursorWrapper) -> Reached:
    """The partitions that got any, once the answer of a statement that ends with REACHED is there."""
    return lambda: [(subscription, part) for subscription, part in cursor.fetchall()]


# --- Claiming ---------------------------------------------------------------------------------------------------

# One statement:
#   win      the partition's oldest deliveries, from the mark on, without what is known to be blocked ({passable})
#   ranked   which of them may go: all of their group's earlier ones must be able to go too
#   chosen   a suspect (its holder fell silent) alone, if it is the oldest that may go; else the oldest batch without.
#            One whose holders fell silent twice goes only to a lane that is alone in its process (`company`)
#   locked   those rows, visibility checked again on the newest version, since the snapshot may be older than another
#            worker's claim; SKIP LOCKED, so nobody waits and nothing deadlocks. By place (ctid) alone: what the window
#            saw cannot be another row's place before the statement ends
#   taken    where one was skipped, or has moved since the window was read, the later ones of its group stay too
# `free` and `got` say that all of the window may go, and that all of it could be locked: nearly always, and then the
# sorting and comparing is not run. Nothing is joined, so that no wrong guess of the planner's makes it quadratic; the
# messages are looked up one by one (OFFSET 0): many are published at the same moment, and a merge by it compares all.
# The first row says what was seen, the others are the messages.
# A token's upper bits are its worker's number (`holder`), so that who finds a lease that ran out can say whose it was.
# {group} is the key when ordered, else the id. A CTE and never `IN (SELECT ... LIMIT)`: that may be run again and
# claim more than the limit (Postgres bug #15715).
CLAIM = """
WITH token AS MATERIALIZED (SELECT %(holder)s + nextval('jobs_lease_token') AS value),
win AS MATERIALIZED (
    SELECT ctid AS tid, id, key, visible_at <= clock_timestamp() AS visible,
           CASE WHEN lease_token IS NULL THEN 0 ELSE receive_count END AS silent
    FROM jobs_delivery
    WHERE subscription_id = %(subscription)s AND part = %(part)s AND id >= %(mark)s AND {passable}
      AND (SELECT paused_at IS NULL FROM jobs_subscription WHERE id = %(subscription)s)
    ORDER BY id LIMIT %(window)s
),
free AS MATERIALIZED (SELECT bool_and(visible AND silent = 0) AS wholly FROM win),
ranked AS MATERIALIZED (
    SELECT tid, id, {group} AS grp,
           bool_and(visible AND silent = 0) OVER earlier AS clear,
           visible AND silent > 0 AND silent <= %(company)s AND row_number() OVER earlier = 1 AS suspect
    FROM win WHERE NOT (SELECT wholly FROM free)
    WINDOW earlier AS (PARTITION BY {group} ORDER BY id)
),
oldest AS MATERIALIZED (
    SELECT min(id) FILTER (WHERE clear) AS clear, min(id) FILTER (WHERE suspect) AS suspect FROM ranked
),
chosen AS MATERIALIZED (
    (SELECT tid, id, {group} AS grp FROM win WHERE (SELECT wholly FROM free) ORDER BY id LIMIT %(batch)s)
    UNION ALL
    (SELECT ranked.tid, ranked.id, ranked.grp FROM ranked, oldest
     WHERE CASE WHEN oldest.suspect < coalesce(oldest.clear, oldest.suspect + 1)
                THEN ranked.id = oldest.suspect ELSE ranked.clear END
     ORDER BY ranked.id LIMIT %(batch)s)
),
locked AS MATERIALIZED (
    SELECT d.ctid AS tid, d.id FROM jobs_delivery d
    WHERE d.ctid = ANY (ARRAY(SELECT tid FROM chosen)) AND d.visible_at <= clock_timestamp()
    ORDER BY d.id FOR UPDATE SKIP LOCKED
),
got AS MATERIALIZED (SELECT ARRAY(SELECT tid FROM locked) = ARRAY(SELECT tid FROM chosen) AS wholly),
taken AS MATERIALIZED (
    SELECT tid FROM chosen WHERE (SELECT wholly FROM got)
    UNION ALL
    SELECT tid FROM (
        SELECT min(tid) AS tid, bool_and(count(*) = 2 AND min(tid) = max(tid))
                                OVER (PARTITION BY max(grp) ORDER BY id) AS held
        FROM (SELECT tid, id, grp FROM chosen UNION ALL SELECT tid, id, NULL FROM locked) pair
        WHERE NOT (SELECT wholly FROM got) GROUP BY id
    ) prefix WHERE held
),
claimed AS (
    UPDATE jobs_delivery d
    SET visible_at = clock_timestamp() + %(lease)s * interval '1 second', lease_token = token.value,
        receive_count = d.receive_count + 1, first_received_at = coalesce(d.first_received_at, clock_timestamp()),
        -- A lease still on it has run out: the attempt that nobody reported is noted here.
        failures = CASE WHEN d.lease_token IS NULL THEN d.failures ELSE coalesce(d.failures, '[]') || jsonb_build_array(
            jsonb_strip_nulls(jsonb_build_object(
                'at', d.visible_at, 'receive', d.receive_count, 'error_class', 'LeaseExpired',
                'reason', 'its worker fell silent',
                'worker', (SELECT max(owner) FROM jobs_process WHERE number = d.lease_token >> 40)))) END
    FROM token
    WHERE d.ctid = ANY (ARRAY(SELECT tid FROM taken))
    RETURNING d.id, d.message_id, d.published_at, d.receive_count
)
SELECT NULL::bigint AS id, NULL::bigint, NULL, NULL, NULL, NULL, NULL, NULL, NULL::int,
       token.value, look.*
FROM token, (
    SELECT count(*), min(id),
           CASE WHEN count(*) = %(window)s AND NOT EXISTS (SELECT FROM taken)
                THEN (SELECT array_agg(DISTINCT key) FROM win) END,
           pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
           pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
           coalesce(bool_or(visible AND silent > %(company)s), false)
    FROM win
) look
UNION ALL
SELECT claimed.id, m.id, m.event_id, m.type, m.key, m.body::text, nullif(m.attributes::text, '{{}}'),
       m.published_at::text, claimed.receive_count, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM claimed CROSS JOIN LATERAL (
    SELECT * FROM jobs_message WHERE published_at = claimed.published_at AND id = claimed.message_id OFFSET 0
) m
ORDER BY id NULLS FIRST
"""
CLAIM_ORDERED = CLAIM.format(group="key", passable="TRUE")
CLAIM_UNORDERED = CLAIM.format(group="id", passable="TRUE")
# Past what is blocked. Without an order only the delivery itself can be, so what is not visible is passed over. These
# are planned each time: for keys not known beforehand the planner expects next to nothing, and reads the partition.
CLAIM_ORDERED_PAST = CLAIM.format(group="key", passable="key <> ALL (%(blocked)s)")
CLAIM_UNORDERED_PAST = CLAIM.format(group="id", passable="visible_at <= clock_timestamp()")


@dataclass(frozen=True)
class Look:
    """What a claim saw: how many deliveries its window held, the oldest of them, and its snapshot's bounds.

    `blocked`: the window's keys, when it was full and none of it could go. `lonely`: it held a suspect that only a lane
    alone in its process may have.
    """

    seen: int
    first: int | None
    blocked: list[str] | None
    xmin: int
    xmax: int
    lonely: bool = False


@dataclass(frozen=True)
class Claim:
    """Deliveries leased to us under one token. `messages` ascend by delivery id."""

    partition: Partition
    token: int
    messages: list[Message]
    look: Look

    @classmethod
    def none(cls, partition: Partition) -> Claim:
        """A claim that was not made."""
        return cls(partition, 0, [], Look(0, None, None, 0, 0))


HOLDER_SHIFT = 40  # below are leases for thirty years at a thousand a second, above eight million workers

# Suspects of so many silent receives may be handled beside other lanes: after the first time, any of a batch and of the
# other lanes' batches may be to blame; those who fell silent twice are few, and one of them is.
IN_COMPANY, ALONE = 1, 32_767


def claim(
    partition: Partition,
    *,
    ordered: bool,
    batch: int,
    window: int,
    mark: int = 0,
    blocked: Sequence[str] = (),
    company: int = ALONE,
    holder: int = 0,
) -> Claim:
    """Lease up to `batch` deliveries of one partition, looking at its oldest `window` from id `mark` on.

    Counts a receive and hides them for the visibility timeout, in a transaction of its own: a crash from here on
    is charged. A suspect comes alone. May return none. `blocked` are keys to look past: a hot key that waits must
    not fill the window for all the others. `company`: IN_COMPANY when other lanes of this process may be at work.
    `holder`: this process's number in jobs_process, 0 for one that has none.
    """
    if blocked:
        statement = CLAIM_ORDERED_PAST if ordered else CLAIM_UNORDERED_PAST
    else:
        statement = CLAIM_ORDERED if ordered else CLAIM_UNORDERED
    with prepared.cursor(keep_plan=not blocked) as cursor:
        cursor.execute(
            statement,
            {
                "subscription": partition[0],
                "part": partition[1],
                "mark": mark,
                "blocked": list(blocked),
                "window": window,
                "batch": batch,
                "lease": settings.VISIBILITY_TIMEOUT.total_seconds(),
                "company": company,
                "holder": holder << HOLDER_SHIFT,
            },
        )
        rows = cursor.fetchall()
    first = rows[0]
    return Claim(partition, first[9], [Message._make(row[:9]) for row in rows[1:]], Look(*first[10:]))


# --- Settling: ack, renew, put back, bury -----------------------------------------------------------------------

# Deleting first takes the row locks for as long as the handler works, so nobody else can have these deliveries.
# A whole batch is found by id range and token: no array of ids travels. The time limits hold for the rest of the
# transaction, so that a handler which hangs is ended by the server before its lease is.
ACK = """
WITH gone AS (
    DELETE FROM jobs_delivery
    WHERE subscription_id = %(subscription)s AND part = %(part)s AND {which} AND lease_token = %(token)s
    RETURNING event_id
),
fresh AS (
    INSERT INTO processed_messages (consumer_name, event_id)
    SELECT %(consumer)s, event_id FROM gone
    {conflict}
)
SELECT (SELECT count(*) FROM gone), {fresh},
       set_config('statement_timeout', %(limit)s, true),
       set_config('idle_in_transaction_session_timeout', %(limit)s, true)
"""
# Nearly always all are new to the ledger: then it need not be asked first, nor say which. Where one is not, this
# fails, before anything else was done in its transaction, and is asked again in the other form.
TOLD = {
    "conflict": "ON CONFLICT DO NOTHING RETURNING event_id",
    "fresh": "CASE WHEN (SELECT count(*) FROM fresh) < %(expected)s"
    " THEN (SELECT coalesce(array_agg(event_id), '{}') FROM fresh) END",
}
ACK_RUN = ACK.format(which="id BETWEEN %(first)s AND %(last)s", conflict="", fresh="NULL")
ACK_RUN_TOLD = ACK.format(which="id BETWEEN %(first)s AND %(last)s", **TOLD)
ACK_SOME = ACK.format(which="id = ANY(%(ids)s)", **TOLD)


UNIQUE_VIOLATION = "23505"


class AlreadyAppliedError(Exception):
    """Of what was to be acked something is in the ledger already."""


@dataclass(frozen=True)
class Acked:
    """`gone`: how many deliveries were still ours. `fresh`: event ids new to the ledger; None when all were."""

    gone: int
    fresh: set[str] | None


def ack(claim: Claim, consumer: str, messages: Sequence[Message]) -> Acked:
    """Delete a run of the claim's deliveries and write the ledger; call it first in the effect's transaction.

    `messages` ascend, and every other delivery of the claim between them has been settled. Raises AlreadyAppliedError
    if one of them is in the ledger: the transaction is then lost, and `ack_told` is the way.
    """
    run = {"first": messages[0].id, "last": messages[-1].id}
    try:
        return _ack(ACK_RUN, claim, consumer, messages, run)
    except IntegrityError as error:
        if sqlstate(error) == UNIQUE_VIOLATION:
            raise AlreadyAppliedError from error
        raise


def ack_told(claim: Claim, consumer: str, messages: Sequence[Message]) -> Acked:
    """The same, and it says which are new to the ledger."""
    return _ack(ACK_RUN_TOLD, claim, consumer, messages, {"first": messages[0].id, "last": messages[-1].id})


def ack_some(claim: Claim, consumer: str, messages: Sequence[Message]) -> Acked:
    """The same for any of the claim's deliveries, which need not be neighbours."""
    with pipelined(), by_index():
        cursor = run(ACK_SOME, _ack_of(claim, consumer, messages, {"ids": [message.id for message in messages]}))
    return _acked(cursor)


def _ack(sql: str, claim: Claim, consumer: str, messages: Sequence[Message], which: dict[str, Any]) -> Acked:
    with connection.cursor() as cursor:
        cursor.execute(sql, _ack_of(claim, consumer, messages, which))
        return _acked(cursor)


def _ack_of(claim: Claim, consumer: str, messages: Sequence[Message], which: dict[str, Any]) -> dict[str, Any]:
    return {
        "subscription": claim.partition[0],
        "part": claim.partition[1],
        "token": claim.token,
        "consumer": consumer,
        "expected": len(messages),
        "limit": f"{int(settings.HANDLER_TIME_LIMIT.total_seconds() * 1000)}ms",
        **which,
    }


def _acked(cursor: CursorWrapper) -> Acked:
    gone, fresh, *_ = cursor.fetchone()
    return Acked(gone, None if fresh is None else set(fresh))


ALREADY_PROCESSED = "SELECT event_id FROM processed_messages WHERE consumer_name = %s AND event_id = ANY(%s)"


def already_processed(consumer: str, messages: Sequence[Message]) -> set[str]:
    """Which of these events the ledger holds for this consumer; asked before an effect outside the database."""
    with connection.cursor() as cursor:
        cursor.execute(ALREADY_PROCESSED, [consumer, [message.event_id for message in messages]])
        return {row[0] for row in cursor.fetchall()}


# What the ledger does not say of a delivery that is gone: the receives before the last, and that it was suppressed.
# Written where a message came again, which is seldom; what goes well at once costs nothing more.
NOTE_RETRIED = """
INSERT INTO jobs_past_delivery (subscription_name, event_id, settled_at, suppressed, receive_count, first_received_at,
                                failures)
SELECT %(consumer)s, event_id, clock_timestamp(), false, receive_count, first_received_at, coalesce(failures, '[]')
FROM jobs_delivery
WHERE subscription_id = %(subscription)s AND part = %(part)s AND id = ANY(%(ids)s) AND lease_token = %(token)s
"""
NOTE_SUPPRESSED = """
INSERT INTO jobs_past_delivery (subscription_name, event_id, settled_at, suppressed, receive_count, failures)
SELECT %(consumer)s, event_id, clock_timestamp(), true, receive_count, '[]'
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (event_id text, receive_count smallint)
"""


def note_retried(claim: Claim, consumer: str, messages: Sequence[Message]) -> None:
    """Keep how those got here that did not at once. Before the ack, in its transaction; no statement where all did."""
    again = [message.id for message in messages if message.receive_count > 1]
    if not again:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            NOTE_RETRIED,
            {
                "consumer": consumer,
                "subscription": claim.partition[0],
                "part": claim.partition[1],
                "token": claim.token,
                "ids": again,
            },
        )


def note_suppressed(consumer: str, messages: Sequence[Message], fresh: set[str] | None) -> None:
    """Keep which of those acked had no effect, since the ledger knew them."""
    known = [] if fresh is None else [message for message in messages if message.event_id not in fresh]
    if not known:
        return
    rows = [{"event_id": message.event_id, "receive_count": message.receive_count} for message in known]
    with connection.cursor() as cursor:
        cursor.execute(NOTE_SUPPRESSED, {"consumer": consumer, "rows": dumps(rows)})


RENEW = """
WITH held AS MATERIALIZED (
    SELECT d.subscription_id, d.part, d.id
    FROM jsonb_to_recordset(%(held)s::jsonb) AS h (subscription smallint, part smallint, id bigint, token bigint)
    JOIN jobs_delivery d ON d.subscription_id = h.subscription AND d.part = h.part AND d.id = h.id
     AND d.lease_token = h.token
    ORDER BY d.subscription_id, d.part, d.id FOR UPDATE OF d SKIP LOCKED
)
UPDATE jobs_delivery d SET visible_at = clock_timestamp() + %(lease)s * interval '1 second'
FROM held WHERE d.subscription_id = held.subscription_id AND d.part = held.part AND d.id = held.id
RETURNING d.id
"""


def renew(held: Iterable[tuple[Claim, Message]]) -> set[int]:
    """Extend the leases still ours by a whole visibility timeout, in one statement; return their delivery ids."""
    rows = [{"subscription": c.partition[0], "part": c.partition[1], "id": m.id, "token": c.token} for c, m in held]
    with connection.cursor() as cursor:
        cursor.execute(RENEW, {"held": dumps(rows), "lease": settings.VISIBILITY_TIMEOUT.total_seconds()})
        return {row[0] for row in cursor.fetchall()}


PUT_BACK = """
UPDATE jobs_delivery d
SET visible_at = clock_timestamp() + r.delay * interval '1 second', lease_token = NULL,
    receive_count = d.receive_count - CASE WHEN r.charged THEN 0 ELSE 1 END,
    failures = CASE WHEN r.failure IS NULL THEN d.failures
                    ELSE coalesce(d.failures, '[]')
                         || jsonb_build_array(r.failure || jsonb_build_object('at', clock_timestamp())) END
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (id bigint, delay float8, charged boolean, failure jsonb)
WHERE d.subscription_id = %(subscription)s AND d.part = %(part)s AND d.id = r.id AND d.lease_token = %(token)s
"""


@dataclass(frozen=True)
class PutBack:
    """One delivery returned to its queue. Uncharged: it was never started, so the receive does not count."""

    message: Message
    delay: float = 0.0
    charged: bool = True
    failure: dict[str, Any] | None = None


def put_back(claim: Claim, returned: Sequence[PutBack]) -> int:
    """Make deliveries available again after their delays (seconds); returns how many were still ours."""
    if not returned:
        return 0
    rows = [
        {"id": r.message.id, "delay": r.delay, "charged": r.charged, "failure": r.failure and storable(r.failure)}
        for r in returned
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            PUT_BACK,
            {
                "rows": dumps(rows),
                "subscription": claim.partition[0],
                "part": claim.partition[1],
                "token": claim.token,
            },
        )
        return int(cursor.rowcount)


GIVE_BACK_CLAIM = """
UPDATE jobs_delivery SET visible_at = clock_timestamp(), lease_token = NULL, receive_count = receive_count - 1
WHERE subscription_id = %s AND part = %s AND id BETWEEN %s AND %s AND lease_token = %s
"""


def give_back_claim(claim: Claim) -> int:
    """Return all of a claim that is still ours, uncharged: it was lost with its connection, not by its own fault."""
    if not claim.messages:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(GIVE_BACK_CLAIM, [*claim.partition, claim.messages[0].id, claim.messages[-1].id, claim.token])
        return int(cursor.rowcount)


SUSPECT = """
UPDATE jobs_delivery SET visible_at = clock_timestamp()
WHERE subscription_id = %s AND part = %s AND id BETWEEN %s AND %s AND lease_token = %s
"""


def suspect(claim: Claim, messages: Sequence[Message]) -> int:
    """End the lease of a run of the claim's deliveries now: charged, and to be handed out one by one."""
    with connection.cursor() as cursor:
        cursor.execute(SUSPECT, [*claim.partition, messages[0].id, messages[-1].id, claim.token])
        return int(cursor.rowcount)


# What had been redriven and is buried again becomes a letter of the next generation; the one before says so.
BURY = """
WITH gone AS (
    DELETE FROM jobs_delivery
    WHERE subscription_id = %(subscription)s AND part = %(part)s AND id = %(id)s AND lease_token = %(token)s
    RETURNING *
),
before AS (
    UPDATE jobs_deadletter l SET outcome = 'failed_again', settled_at = clock_timestamp()
    FROM gone WHERE l.event_id = gone.event_id AND l.subscription_name = %(consumer)s AND l.outcome = 'sent'
    RETURNING l.generation
)
INSERT INTO jobs_deadletter (subscription_name, message_id, event_id, message_type, key, body, attributes, cause,
                             error_class, reason, traceback, failures, receive_count, published_at, first_received_at,
                             origin, fingerprint, generation)
SELECT %(consumer)s, m.id, m.event_id, m.type, m.key, m.body, m.attributes, %(cause)s,
       %(error_class)s, %(reason)s, %(traceback)s,
       coalesce(gone.failures, '[]')
       || jsonb_build_array(%(failure)s::jsonb || jsonb_build_object('at', clock_timestamp())),
       %(receives)s, m.published_at, gone.first_received_at,
       %(origin)s, %(fingerprint)s, (SELECT coalesce(max(generation) + 1, 0) FROM before)
FROM gone JOIN jobs_message m ON m.published_at = gone.published_at AND m.id = gone.message_id
RETURNING id
"""


@dataclass(frozen=True)
class Burial:
    """Why a delivery becomes a dead letter; the texts are cleaned of what Postgres cannot store."""

    cause: str
    error_class: str
    reason: str
    traceback: str
    receives: int
    worker: str = ""
    origin: str = ""
    fingerprint: str = ""


def bury(claim: Claim, consumer: str, message: Message, burial: Burial) -> int | None:
    """Move one delivery to the dead letters in one statement; the letter's id, or None if it was no longer ours."""
    with connection.cursor() as cursor:
        cursor.execute(
            BURY,
            {
                "subscription": claim.partition[0],
                "part": claim.partition[1],
                "id": message.id,
                "token": claim.token,
                "consumer": consumer,
                **_as_parameters(burial),
            },
        )
        row = cursor.fetchone()
    return row[0] if row else None


BURY_UNQUEUED = """
INSERT INTO jobs_deadletter (subscription_name, message_id, event_id, message_type, key, body, attributes, cause,
                             error_class, reason, traceback, failures, receive_count, published_at, first_received_at,
                             origin, fingerprint)
SELECT %(consumer)s, NULL, m.event_id, m.type, m.key, m.body, m.attributes, %(cause)s,
       %(error_class)s, %(reason)s, %(traceback)s,
       jsonb_build_array(%(failure)s::jsonb || jsonb_build_object('at', at.now)), %(receives)s, at.now, at.now,
       %(origin)s, %(fingerprint)s
FROM jsonb_to_record(%(message)s::jsonb) AS m (event_id text, type text, key text, body jsonb, attributes jsonb),
     (SELECT clock_timestamp()) AS at (now)
RETURNING id
"""


def bury_unqueued(consumer: str, message: NewMessage, burial: Burial) -> int:
    """Make a dead letter of what never was a delivery: it could not even be published. The letter's id."""
    with connection.cursor() as cursor:
        row = dumps(_storable_deep(message.as_row()))
        cursor.execute(BURY_UNQUEUED, {"consumer": consumer, "message": row, **_as_parameters(burial)})
        return int(cursor.fetchone()[0])


def _as_parameters(burial: Burial) -> dict[str, Any]:
    failure = {"error_class": burial.error_class, "reason": burial.reason, "receive": burial.receives}
    if burial.worker:
        failure["worker"] = burial.worker
    return {
        "origin": _clean(burial.origin, 200),
        "fingerprint": burial.fingerprint,
        "cause": burial.cause,
        "error_class": _clean(burial.error_class, 200),
        "reason": _clean(burial.reason, 2_000),
        "traceback": _clean(burial.traceback, 20_000),
        "failure": dumps(storable(failure)),
        "receives": burial.receives,
    }


# A new delivery of the message, for the subscription that buried it: a new id, so that no worker's low-water mark has
# passed it; a receive count of its own; the ledger as it is. `writer` gives the transaction its id before the
# delivery has one, as a publisher's does. A re-adapted message is one of its own in the log, for this consumer alone.
# What the ledger knows is not sent: it was applied. Which letters, and that they are sent once, is the caller's.
REDRIVE = """
WITH writer AS MATERIALIZED (SELECT pg_current_xact_id() AS xid),
letter AS MATERIALIZED (
    SELECT l.id AS letter_id, l.subscription_name, l.message_id, l.published_at, l.event_id, l.message_type, l.key,
           l.attributes, s.id AS subscription_id, s.partitions, s.salt, r.body, r.body IS NOT NULL AS anew
    FROM writer, jsonb_to_recordset(%(letters)s::jsonb) AS r (id bigint, body jsonb)
    JOIN jobs_deadletter l ON l.id = r.id
    JOIN jobs_subscription s ON s.name = l.subscription_name
    WHERE NOT EXISTS (
        SELECT FROM processed_messages p WHERE p.consumer_name = l.subscription_name AND p.event_id = l.event_id)
),
anew AS (
    INSERT INTO jobs_message (event_id, type, key, body, attributes)
    SELECT event_id, message_type, key, body,
           attributes || jsonb_build_object('only_for', subscription_name, 'readapted_from', letter_id::text)
    FROM letter WHERE anew ORDER BY letter_id
    RETURNING id, published_at, (attributes ->> 'readapted_from')::bigint AS letter_id
),
routed AS (
    SELECT letter.letter_id, letter.subscription_id, letter.partitions, letter.event_id,
           coalesce(anew.id, letter.message_id) AS message_id,
           coalesce(anew.published_at, letter.published_at) AS published_at,
           CASE letter.salt WHEN 1 THEN letter.key
                ELSE letter.key || '#' || coalesce(anew.id, letter.message_id) %% letter.salt END AS key
    FROM letter LEFT JOIN anew USING (letter_id) WHERE letter.message_id IS NOT NULL
),
delivery AS (
    INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)
    SELECT subscription_id, abs(hashtextextended(key, 0) %% partitions), message_id, published_at, event_id, key
    FROM routed ORDER BY message_id
    RETURNING subscription_id, part
)
SELECT (SELECT coalesce(array_agg(letter_id), '{}') FROM routed),
       (SELECT coalesce(jsonb_agg(DISTINCT jsonb_build_array(subscription_id, part)), '[]')::text FROM delivery)
"""


def redrive(letters: Mapping[int, Mapping[str, Any] | None]) -> tuple[set[int], list[Partition]]:
    """Offer dead letters' messages to their subscriptions again, with another body where one is given.

    Returns which letters were sent (the others are in the ledger already) and the partitions that got any.
    """
    rows = [{"id": id_, "body": body} for id_, body in letters.items()]
    with connection.cursor() as cursor:
        cursor.execute(REDRIVE, {"letters": dumps(rows)})
        sent, partitions = cursor.fetchone()
    return set(sent), [(subscription, part) for subscription, part in json.loads(partitions)]


# Postgres stores neither NUL nor half a surrogate pair; a failure must always be writable.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _clean(text: str, longest: int) -> str:
    text = UNSTORABLE.sub("�", text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _storable_deep(value: Any) -> Any:
    if isinstance(value, str):
        return UNSTORABLE.sub("�", value)
    if isinstance(value, Mapping):
        return {_storable_deep(key): _storable_deep(inner) for key, inner in value.items()}
    return [_storable_deep(inner) for inner in value] if isinstance(value, list | tuple) else value


def storable(failure: dict[str, Any]) -> dict[str, Any]:
    """The facts about a failure with their texts cleaned and bounded."""
    return {key: _clean(value, 500) if isinstance(value, str) else value for key, value in failure.items()}


# --- Looking for work -------------------------------------------------------------------------------------------

READY_PARTITIONS = """
SELECT s.id, p.part
FROM jobs_subscription s
CROSS JOIN generate_series(0, s.partitions - 1) AS p (part)
LEFT JOIN jsonb_to_recordset(%(marks)s::jsonb) AS k (subscription smallint, part smallint, mark bigint)
       ON k.subscription = s.id AND k.part = p.part
WHERE s.id = ANY(%(subscriptions)s) AND s.paused_at IS NULL AND EXISTS (
    SELECT FROM jobs_delivery d
    WHERE d.subscription_id = s.id AND d.part = p.part AND d.id >= coalesce(k.mark, 0)
      AND d.visible_at <= clock_timestamp()
)
"""


def ready_partitions(subscriptions: Sequence[int], marks: dict[Partition, int]) -> set[Partition]:
    """Partitions of unpaused subscriptions that have something visible at or after their mark. Run once per poll."""
    rows = [{"subscription": s, "part": p, "mark": mark} for (s, p), mark in marks.items()]
    with connection.cursor() as cursor:
        cursor.execute(READY_PARTITIONS, {"subscriptions": list(subscriptions), "marks": dumps(rows)})
        return {(subscription, part) for subscription, part in cursor.fetchall()}


@dataclass(frozen=True)
class Controls:
    """What the operator has set for one subscription; None leaves it to the route."""

    paused: bool = False
    batch: int | None = None
    concurrency: int | None = None
    rate_per_second: float | None = None


def controls() -> dict[int, Controls]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, paused_at IS NOT NULL, batch, concurrency, rate_per_second FROM jobs_subscription")
        return {row[0]: Controls(*row[1:]) for row in cursor.fetchall()}


# A bucket that holds one second's worth. Filled by the time since it was last asked, never beyond its size.
TAKE_RATE = """
INSERT INTO jobs_rate AS r (subscription_id, tokens, filled_at)
VALUES (%(subscription)s, greatest(1, %(rate)s), clock_timestamp())
ON CONFLICT (subscription_id) DO UPDATE SET
    tokens = least(greatest(1, %(rate)s),
                   r.tokens + %(rate)s * extract(epoch FROM greatest(clock_timestamp() - r.filled_at, interval '0'))),
    filled_at = clock_timestamp()
RETURNING floor(tokens)::int
"""


def rate_allows(subscription: int, rate_per_second: float) -> int:
    """How many deliveries of this subscription may be handed out now, over all workers; spend what is used."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE_RATE, {"subscription": subscription, "rate": rate_per_second})
        return int(cursor.fetchone()[0])


def spend_rate(subscription: int, count: int) -> None:
    """Two workers that asked at once may overdraw the bucket; it then refills from below zero, so the rate holds."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_rate SET tokens = tokens - %s WHERE subscription_id = %s", [count, subscription])


# --- What the queue holds ---------------------------------------------------------------------------------------

DEPTHS = """
SELECT s.name, count(d.id), count(d.id) FILTER (WHERE d.lease_token IS NOT NULL AND d.visible_at > clock_timestamp()),
       min(d.published_at)
FROM jobs_subscription s LEFT JOIN jobs_delivery d ON d.subscription_id = s.id
GROUP BY s.name ORDER BY s.name
"""


@dataclass(frozen=True)
class Depth:
    """`waiting` counts everything unacked, `in_flight` included; `oldest` is when its oldest message was published."""

    subscription: str
    waiting: int
    in_flight: int
    oldest: datetime | None


def depths() -> list[Depth]:
    with connection.cursor() as cursor:
        cursor.execute(DEPTHS)
        return [Depth(*row) for row in cursor.fetchall()]
