"""The SQL of dead letters, one function per statement: reading, deciding, redriving, the audit log.

Guarantee: whoever decides locks the letters first, in id order, and looks again whether they still wait; so of two
who decide at once each letter has one decision. Called by selectors, services, preflight and redrive, in their
transaction. Burying and offering again are in jobs/queue.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection

from jobs.dead_letters.case_files import Case
from jobs.dead_letters.models import Decision
from jobs.dead_letters.selection import Selection
from jobs.messages import dumps

CASE_COLUMNS = (
    "id, subscription_name, message_id, event_id, message_type, key, body::text, attributes::text, published_at"
)
FILTERS = {
    "fingerprint": "fingerprint = %(fingerprint)s",
    "subscription": "subscription_name = %(subscription)s",
    "origin": "origin = %(origin)s",
    "error": "error_class = %(error)s",
    "event_id": "event_id = %(event_id)s",
    "since": "dead_lettered_at >= %(since)s",
    "until": "dead_lettered_at <= %(until)s",
    "up_to": "id <= %(up_to)s",
    "after": "id > %(after)s",
}
# Those that an index reads in the order of the list, the most telling first; the others, and all but the first of
# these, are looked for among what it gives: two of them would be read whole and compared.
LEADING = ("event_id", "fingerprint", "origin", "subscription")
ALWAYS_SERVED = {"since", "until"}  # the time is in each of those indexes
OPEN = "waits_from IS NOT NULL"


def _conditions(selection: Selection) -> tuple[list[str], list[str], dict[str, Any]]:
    """What an index serves, what it does not, and the parameters."""
    parameters: dict[str, Any] = {name: getattr(selection, name) for name in FILTERS}
    served: list[str] = []
    sought: list[str] = []
    if selection.ids:
        served.append("id = ANY(%(ids)s)")
        parameters["ids"] = list(selection.ids)
    leading = next((name for name in LEADING if parameters[name]), None)
    for name, sql in FILTERS.items():
        if parameters[name]:
            (served if name == leading or name in ALWAYS_SERVED else sought).append(sql)
    if selection.decision == "open":
        sought.append(OPEN)
    elif selection.decision:
        sought.append("decision = %(decision)s")
        parameters["decision"] = selection.decision
    return served, sought, parameters


def _where(selection: Selection, *more: str) -> tuple[str, dict[str, Any]]:
    served, sought, parameters = _conditions(selection)
    return " AND ".join([*served, *sought, *more]) or "true", parameters


# --- Reading ----------------------------------------------------------------------------------------------------

# At most `look` rows are looked at, whatever the filters: an index has them in order, the rest is sought among them.
PAGE = """
WITH looked AS MATERIALIZED (
    SELECT id, dead_lettered_at, {sought} AS wanted FROM jobs_deadletter
    WHERE {served} AND (dead_lettered_at, id) < (%(before_at)s, %(before_id)s)
    ORDER BY dead_lettered_at DESC, id DESC LIMIT %(look)s
),
found AS (SELECT id, dead_lettered_at FROM looked WHERE wanted ORDER BY dead_lettered_at DESC, id DESC LIMIT %(page)s)
SELECT (SELECT coalesce(array_agg(id ORDER BY dead_lettered_at DESC, id DESC), '{{}}') FROM found),
       (SELECT count(*) FROM looked), last.at, last.id
FROM (SELECT NULL) nothing LEFT JOIN LATERAL (
    SELECT dead_lettered_at AS at, id FROM (
        SELECT * FROM (SELECT dead_lettered_at, id FROM found ORDER BY dead_lettered_at, id LIMIT 1) f
        WHERE (SELECT count(*) FROM found) = %(page)s
        UNION ALL
        SELECT * FROM (SELECT dead_lettered_at, id FROM looked ORDER BY dead_lettered_at, id LIMIT 1) l
        WHERE (SELECT count(*) FROM found) < %(page)s AND (SELECT count(*) FROM looked) = %(look)s
    ) place
) last ON true
"""


@dataclass(frozen=True)
class PageOfIds:
    """`older`: where the next page begins, or None. `looked`: how many rows were read for this one."""

    ids: list[int]
    older: tuple[datetime, int] | None
    looked: int


def page(selection: Selection, before: tuple[datetime, int] | None) -> PageOfIds:
    sql, parameters = page_statement(selection, before)
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        ids, looked, at, id_ = cursor.fetchone()
    return PageOfIds(list(ids), (at, id_) if id_ else None, looked)


def page_statement(selection: Selection, before: tuple[datetime, int] | None) -> tuple[str, dict[str, Any]]:
    """The statement of one page of the list, newest first; apart, so that a test can ask for its plan."""
    served, sought, parameters = _conditions(selection)
    at, id_ = before or ("infinity", 0)
    parameters |= {
        "before_at": at,
        "before_id": id_,
        "page": settings.DEAD_LETTER_PAGE,
        "look": settings.DEAD_LETTER_LOOK,
    }
    return PAGE.format(served=" AND ".join(served) or "true", sought=" AND ".join(sought) or "true"), parameters


# From the tally, and each kind's first and latest letter: a million letters are some thousand rows of it. Only those
# kinds that are shown are looked at closer.
GROUPS = """
WITH kind AS MATERIALIZED (
    SELECT fingerprint, sum(letters)::int AS letters, sum(waiting)::int AS waiting
    FROM jobs_deadletter_tally GROUP BY fingerprint HAVING NOT %(open)s OR sum(waiting) > 0
    ORDER BY max(hour) DESC, fingerprint LIMIT %(most)s
)
SELECT kind.fingerprint, kind.letters, kind.waiting, origin.count, origin.some, hour.counts,
       last.subscription_name, last.message_type, last.error_class, last.reason, last.dead_lettered_at,
       first.dead_lettered_at
FROM kind
CROSS JOIN LATERAL (
    SELECT count(*) AS count, (array_agg(origin ORDER BY origin))[1:3] AS some
    FROM (SELECT DISTINCT origin FROM jobs_deadletter_tally t
          WHERE t.fingerprint = kind.fingerprint AND origin <> '') named
) origin
CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_agg(jsonb_build_array(extract(epoch FROM hour)::bigint, letters)), '[]')::text AS counts
    FROM (SELECT hour, sum(letters) AS letters FROM jobs_deadletter_tally t
          WHERE t.fingerprint = kind.fingerprint AND hour >= %(since)s GROUP BY hour) recent
) hour
CROSS JOIN LATERAL (SELECT * FROM jobs_deadletter d WHERE d.fingerprint = kind.fingerprint
                    ORDER BY dead_lettered_at DESC, id DESC LIMIT 1) last
CROSS JOIN LATERAL (SELECT dead_lettered_at FROM jobs_deadletter d WHERE d.fingerprint = kind.fingerprint
                    ORDER BY dead_lettered_at, id LIMIT 1) first
ORDER BY last.dead_lettered_at DESC
"""


def groups(*, open_only: bool, most: int, since: datetime) -> list[tuple[Any, ...]]:
    """The kinds seen last: what selectors.Group has, with the hours' counts from `since` on."""
    with connection.cursor() as cursor:
        cursor.execute(GROUPS, {"open": open_only, "most": most, "since": since})
        return [(*row[:5], json.loads(row[5]), *row[6:]) for row in cursor.fetchall()]


def count_open(selection: Selection, *, most: int) -> int:
    """How many of a selection wait for a decision, counted up to one more than `most`."""
    return _count(selection, most, OPEN)


def count_any(selection: Selection, *, most: int) -> int:
    """The same, whether they wait or not."""
    return _count(selection, most)


def _count(selection: Selection, most: int, *more: str) -> int:
    where, parameters = _where(selection, *more)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM (SELECT FROM jobs_deadletter WHERE {where} LIMIT {int(most) + 1}) counted",
            parameters,
        )
        return int(cursor.fetchone()[0])


def last_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM jobs_deadletter")
        return int(cursor.fetchone()[0])


def cases(selection: Selection, *, at_once: int = 2_000) -> Iterator[list[Case]]:
    """The letters of a selection that wait for a decision, in id order, some at a time."""
    seen = 0
    while True:
        where, parameters = _where(selection, OPEN, "id > %(seen)s")
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {CASE_COLUMNS} FROM jobs_deadletter WHERE {where} ORDER BY id LIMIT {int(at_once)}",
                {**parameters, "seen": seen},
            )
            rows = cursor.fetchall()
        if not rows:
            return
        seen = rows[-1][0]
        yield [_case(row) for row in rows]


def _case(row: tuple[Any, ...]) -> Case:
    id_, subscription, message_id, event_id, type_, key, body, attributes, published_at = row
    return Case(id_, subscription, message_id, event_id, type_, key, body, json.loads(attributes), published_at)


def count_older(selection: Selection, than: datetime) -> int:
    """Of those that wait for a decision, how many were published before this."""
    where, parameters = _where(selection, OPEN, "published_at < %(than)s")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM jobs_deadletter WHERE {where}", {**parameters, "than": than})
        return int(cursor.fetchone()[0])


def in_ledger(cases: Sequence[Case]) -> set[int]:
    """The letters whose event their consumer has applied."""
    rows = [{"id": case.letter_id, "consumer": case.subscription, "event": case.event_id} for case in cases]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id FROM jsonb_to_recordset(%s::jsonb) AS r (id bigint, consumer text, event text)"
            " JOIN processed_messages p ON p.consumer_name = r.consumer AND p.event_id = r.event",
            [dumps(rows)],
        )
        return {id_ for (id_,) in cursor.fetchall()}


def body_text(letter_id: int) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT body::text FROM jobs_deadletter WHERE id = %s", [letter_id])
        return str(cursor.fetchone()[0])


JOURNEY = """
SELECT at, what FROM (
    SELECT published_at AS at, 'published as ' || type
           || coalesce(', re-adapted for ' || (attributes ->> 'only_for'), '') AS what
    FROM jobs_message WHERE event_id = %(event)s
    UNION ALL
    SELECT p.processed_at, 'applied by ' || p.consumer_name
    FROM processed_messages p WHERE p.event_id = %(event)s AND p.consumer_name IN (SELECT name FROM jobs_subscription)
    UNION ALL
    SELECT dead_lettered_at, 'dead-lettered by ' || subscription_name || ' as letter ' || id
    FROM jobs_deadletter WHERE event_id = %(event)s
    UNION ALL
    SELECT decided_at, 'letter ' || id || ' decided: ' || decision
    FROM jobs_deadletter WHERE event_id = %(event)s AND decision <> ''
    UNION ALL
    SELECT sent_at, 'letter ' || id || ' sent to ' || subscription_name || ' again'
    FROM jobs_deadletter WHERE event_id = %(event)s AND sent_at IS NOT NULL
) steps ORDER BY at, what LIMIT 200
"""


def journey(event_id: str) -> list[tuple[datetime, str]]:
    """What became of one event everywhere, in the order of time."""
    with connection.cursor() as cursor:
        cursor.execute(JOURNEY, {"event": event_id})
        return list(cursor.fetchall())


# --- Deciding ---------------------------------------------------------------------------------------------------


def lock_open(selection: Selection, *, most: int) -> list[int]:
    """Lock those of a selection that wait for a decision, in id order, and return their ids; up to `most`.

    Waits for whoever is deciding about them, and leaves out what they decided.
    """
    where, parameters = _where(selection, OPEN)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM jobs_deadletter WHERE {where} ORDER BY id LIMIT {int(most)} FOR NO KEY UPDATE", parameters
        )
        return [id_ for (id_,) in cursor.fetchall()]


def lock_any(selection: Selection, *, most: int) -> list[int]:
    """The same, whether they wait or not: for what changes no decision."""
    where, parameters = _where(selection)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM jobs_deadletter WHERE {where} ORDER BY id LIMIT {int(most)} FOR NO KEY UPDATE", parameters
        )
        return [id_ for (id_,) in cursor.fetchall()]


def decide(
    ids: Sequence[int], decision: Decision, *, by: str, note: str, waits_from: datetime | None, redrive: int | None
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_deadletter SET decision = %(decision)s, decided_at = clock_timestamp(), decided_by = %(by)s,"
            " note = %(note)s, waits_from = %(waits_from)s, redrive_id = %(redrive)s,"
            " outcome = CASE WHEN %(redrive)s::bigint IS NULL THEN '' ELSE 'queued' END WHERE id = ANY(%(ids)s)",
            {
                "decision": decision.value,
                "by": by,
                "note": note,
                "waits_from": waits_from,
                "redrive": redrive,
                "ids": list(ids),
            },
        )


REOPEN = """
UPDATE jobs_deadletter SET decision = '', decided_at = NULL, decided_by = '', note = '', waits_from = clock_timestamp(),
    redrive_id = NULL, outcome = ''
WHERE id = ANY(%s) AND decision IN ('discard', 'superseded', 'quarantine') RETURNING id
"""


def reopen(ids: Sequence[int]) -> list[int]:
    """Take back a mark; those that were redriven stay so."""
    with connection.cursor() as cursor:
        cursor.execute(REOPEN, [list(ids)])
        return sorted(id_ for (id_,) in cursor.fetchall())


def assign(ids: Sequence[int], to: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_deadletter SET assigned_to = %s WHERE id = ANY(%s)", [to, list(ids)])


def first_to_go(ids: Sequence[int]) -> datetime:
    """When the oldest of these was dead-lettered."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT min(dead_lettered_at) FROM jobs_deadletter WHERE id = ANY(%s)", [list(ids)])
        at: datetime = cursor.fetchone()[0]
    return at


def write_audit(
    *, by: str, action: str, selection: str, ids: Sequence[int], note: str, details: Mapping[str, Any]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_audit (by, action, selection, letter_ids, note, details)"
            " VALUES (%s, %s, %s, %s, %s, %s::jsonb)",
            [by, action, selection, list(ids), note, dumps(details)],
        )


# --- Redriving --------------------------------------------------------------------------------------------------


def now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        at: datetime = cursor.fetchone()[0]
    return at


def queued(redrive: int, count: int) -> list[Case]:
    """The next letters of a redrive, locked."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {CASE_COLUMNS} FROM jobs_deadletter WHERE redrive_id = %s AND outcome = 'queued'"
            " ORDER BY id LIMIT %s FOR NO KEY UPDATE",
            [redrive, count],
        )
        return [_case(row) for row in cursor.fetchall()]


def outcomes(redrive: int, became: Mapping[int, tuple[str, bool]]) -> None:
    """Write what became of letters just handled: id → outcome, and whether newer facts had been applied."""
    rows = [{"id": id_, "outcome": outcome, "older": older} for id_, (outcome, older) in became.items()]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_deadletter l SET outcome = r.outcome, older = r.older,"
            " sent_at = CASE WHEN r.outcome = 'sent' THEN clock_timestamp() END,"
            " settled_at = CASE WHEN r.outcome <> 'sent' THEN clock_timestamp() END"
            " FROM jsonb_to_recordset(%s::jsonb) AS r (id bigint, outcome text, older boolean)"
            " WHERE l.id = r.id AND l.redrive_id = %s",
            [dumps(rows), redrive],
        )


def refuse(reasons: Mapping[int, str]) -> None:
    """What was not sent waits for a decision again, and says why it would have failed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_deadletter l SET decision = '', decided_at = NULL, decided_by = '', note = r.reason,"
            " waits_from = clock_timestamp(), outcome = 'refused', settled_at = clock_timestamp()"
            " FROM jsonb_to_recordset(%s::jsonb) AS r (id bigint, reason text) WHERE l.id = r.id",
            [dumps([{"id": id_, "reason": reason[:500].replace("\x00", "�")} for id_, reason in reasons.items()])],
        )


def release(redrive: int) -> int:
    """What had not been sent when a redrive stopped waits for a decision again; how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_deadletter SET decision = '', decided_at = NULL, decided_by = '', note = '',"
            " waits_from = clock_timestamp(), outcome = '', redrive_id = NULL"
            " WHERE redrive_id = %s AND outcome = 'queued'",
            [redrive],
        )
        return int(cursor.rowcount)


def settle_sent(redrive: int) -> int:
    """Note which of the letters sent have been applied since: the ledger says so. Those buried again are noted then."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_deadletter l SET outcome = CASE WHEN l.older THEN 'older' ELSE 'applied' END,"
            " settled_at = p.processed_at FROM processed_messages p"
            " WHERE l.redrive_id = %s AND l.outcome = 'sent'"
            "   AND p.consumer_name = l.subscription_name AND p.event_id = l.event_id",
            [redrive],
        )
        return int(cursor.rowcount)


def counts(redrive: int) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT outcome, count(*) FROM jobs_deadletter WHERE redrive_id = %s AND outcome <> '' GROUP BY outcome",
            [redrive],
        )
        return dict(cursor.fetchall())


# --- The alarms -------------------------------------------------------------------------------------------------

# Counted up to a thousand: more is said as that. Two index entries and a thousand rows for each subscription.
WAITING = """
WITH RECURSIVE name AS (
    (SELECT subscription_name AS it FROM jobs_deadletter WHERE waits_from IS NOT NULL ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT (SELECT d.subscription_name FROM jobs_deadletter d
            WHERE d.waits_from IS NOT NULL AND d.subscription_name > name.it ORDER BY 1 LIMIT 1)
    FROM name WHERE name.it IS NOT NULL
)
SELECT name.it,
       (SELECT count(*) FROM (SELECT FROM jobs_deadletter d WHERE d.subscription_name = name.it
                              AND d.waits_from <= %(now)s LIMIT 1001) counted),
       (SELECT min(d.waits_from) FROM jobs_deadletter d
        WHERE d.subscription_name = name.it AND d.waits_from <= %(now)s),
       (SELECT min(d.dead_lettered_at) FROM jobs_deadletter d
        WHERE d.subscription_name = name.it AND d.waits_from IS NOT NULL)
FROM name WHERE name.it IS NOT NULL
"""


def waiting(now: datetime) -> list[tuple[str, int, datetime | None, datetime]]:
    """Of each subscription: how many wait for a decision now (1001: more), since when, and the first that will go."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING, {"now": now})
        return list(cursor.fetchall())


# By age, of those that wait for a decision now; of more than ten thousand of a subscription the newest are not counted.
AGES = """
WITH RECURSIVE name AS (
    SELECT min(subscription_name) AS it FROM jobs_deadletter WHERE waits_from IS NOT NULL
    UNION ALL
    SELECT (SELECT min(subscription_name) FROM jobs_deadletter
            WHERE subscription_name > name.it AND waits_from IS NOT NULL) FROM name WHERE name.it IS NOT NULL
)
SELECT name.it, count(*) FILTER (WHERE waits > %(now)s - interval '5 minutes'),
       count(*) FILTER (WHERE waits <= %(now)s - interval '5 minutes' AND waits > %(now)s - interval '15 minutes'),
       count(*) FILTER (WHERE waits <= %(now)s - interval '15 minutes' AND waits > %(now)s - interval '1 day'),
       count(*) FILTER (WHERE waits <= %(now)s - interval '1 day' AND waits > %(now)s - interval '7 days'),
       count(*) FILTER (WHERE waits <= %(now)s - interval '7 days')
FROM name CROSS JOIN LATERAL (
    SELECT d.waits_from AS waits FROM jobs_deadletter d
    WHERE d.subscription_name = name.it AND d.waits_from <= %(now)s ORDER BY d.waits_from LIMIT 10000
) letter WHERE name.it IS NOT NULL GROUP BY name.it
"""


def ages(now: datetime) -> dict[str, tuple[int, ...]]:
    """Of each subscription, how many wait for a decision: for up to 5 min, 15 min, a day, 7 days, and longer."""
    with connection.cursor() as cursor:
        cursor.execute(AGES, {"now": now})
        return {row[0]: tuple(row[1:]) for row in cursor.fetchall()}
