"""What the server itself can do: the same row work as ours in plain SQL loops on one connection, and COPY.

The tables are ours (the product's own migrations made them), so are the rows; the loops promise nothing: no order, no
suspects, no fence beyond the token, no retry.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable

import psycopg

from tests.benchmarks import server
from tests.benchmarks.process import database_of
from tests.benchmarks.systems import OURS, SYSTEMS

BATCH = 500

LEASE = """
WITH oldest AS MATERIALIZED (
    SELECT subscription_id, part, id FROM jobs_delivery
    WHERE subscription_id = %(subscription)s AND part = %(part)s AND id > %(after)s AND visible_at <= clock_timestamp()
    ORDER BY id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
)
UPDATE jobs_delivery d
SET visible_at = clock_timestamp() + interval '30 s', lease_token = %(token)s, receive_count = receive_count + 1
FROM oldest
WHERE d.subscription_id = oldest.subscription_id AND d.part = oldest.part AND d.id = oldest.id
RETURNING d.id, d.message_id, d.published_at
"""
LEASE_WITH_BODIES = f"""
WITH leased AS ({LEASE})
SELECT leased.id, m.event_id, m.body::text
FROM leased JOIN jobs_message m ON m.published_at = leased.published_at AND m.id = leased.message_id ORDER BY leased.id
"""
GONE = """
    DELETE FROM jobs_delivery
    WHERE subscription_id = %(subscription)s AND part = %(part)s AND id BETWEEN %(first)s AND %(last)s
      AND lease_token = %(token)s
"""
LEDGER = "INSERT INTO processed_messages (consumer_name, event_id)"
HISTORY = """
INSERT INTO pricing_pricehistory (wine_id, merchant_id, price_usd, observed_at, event_id, late)
SELECT body.wine_id, body.merchant_id, body.new_price_usd, body.occurred_at, body.event_id, false
"""
BODY = "(event_id text, wine_id text, merchant_id text, new_price_usd numeric, occurred_at timestamptz)"
ALL_IN_SQL = f"""
WITH gone AS ({GONE} RETURNING message_id, published_at, event_id),
fresh AS ({LEDGER} SELECT 'plain', event_id FROM gone ON CONFLICT DO NOTHING RETURNING event_id)
{HISTORY} FROM fresh JOIN gone USING (event_id)
JOIN jobs_message m ON m.published_at = gone.published_at AND m.id = gone.message_id,
LATERAL jsonb_to_record(m.body) AS body {BODY}
"""
FRESH = f"""
WITH gone AS ({GONE} RETURNING event_id)
{LEDGER} SELECT 'plain', event_id FROM gone ON CONFLICT DO NOTHING RETURNING event_id
"""
EFFECT = f"{HISTORY} FROM jsonb_to_recordset(%s::jsonb) AS body {BODY}"

Step = Callable[[psycopg.Connection, dict[str, int]], int]


def in_sql(session: psycopg.Connection, where: dict[str, int]) -> int:
    """Lease, commit; then delete, ledger and history in one statement, commit. Bodies never leave the server."""
    ids = [row[0] for row in session.execute(LEASE, where).fetchall()]
    if ids:
        where["after"] = max(ids)
        session.execute(ALL_IN_SQL, {**where, "first": min(ids), "last": max(ids)})
    return len(ids)


def through_python(session: psycopg.Connection, where: dict[str, int]) -> int:
    """The same with the bodies handed out and back, as a handler needs them."""
    rows = session.execute(LEASE_WITH_BODIES, where).fetchall()
    if rows:
        where["after"] = rows[-1][0]
        with session.transaction():
            span = {"first": rows[0][0], "last": rows[-1][0]}
            fresh = {row[0] for row in session.execute(FRESH, {**where, **span}).fetchall()}
            session.execute(EFFECT, ["[" + ",".join(row[2] for row in rows if row[1] in fresh) + "]"])
    return len(rows)


def plain_sql(step: Step) -> float:
    """Empty the price-history queue that is there, partition by partition; returns messages per second."""
    database = database_of(SYSTEMS[OURS])
    server.execute("VACUUM ANALYZE", database)
    server.execute("CHECKPOINT")
    with server.connect(database) as session:
        row = session.execute("SELECT id FROM jobs_subscription WHERE name = 'price-history'").fetchone()
        assert row
        (parts,) = session.execute("SELECT array_agg(DISTINCT part) FROM jobs_delivery").fetchone() or ([],)
        done, token = 0, 0
        began = time.perf_counter()
        for part in parts:
            where = {"subscription": row[0], "part": part, "after": 0, "batch": BATCH, "token": 0}
            while True:
                token += 1
                where["token"] = token
                handled = step(session, where)
                done += handled
                if not handled:
                    break
        seconds = time.perf_counter() - began
        assert not server.execute("SELECT EXISTS (SELECT FROM jobs_delivery)", database)[0][0]
    return done / seconds


def copy(count: int, subscriptions: tuple[int, ...], per_commit: int = 1_000) -> float:
    """COPY the rows that publishing `count` events to so many subscriptions writes; returns events per second."""
    texts = []
    for first in range(0, count, per_commit):
        messages, deliveries = io.StringIO(), io.StringIO()
        for number in range(first, min(first + per_commit, count)):
            event_id, key, at = f"evt_{number:026d}", f"wn_{number % 5000}", "2026-11-30 00:00:00+00"
            body = json.dumps({"i": number})
            messages.write(f"{number}\t{at}\t{event_id}\tbench.fan_out\t{key}\t{body}\t{{}}\n")
            for subscription in subscriptions:
                deliveries.write(f"{subscription}\t{number % 16}\t{number}\t{at}\t{event_id}\t{key}\n")
        texts.append((messages.getvalue(), deliveries.getvalue()))
    with psycopg.connect(server.url(database_of(SYSTEMS[OURS]))) as session:
        began = time.perf_counter()
        for message_rows, delivery_rows in texts:
            with session.cursor().copy(
                "COPY jobs_message (id, published_at, event_id, type, key, body, attributes) FROM STDIN"
            ) as stream:
                stream.write(message_rows)
            with session.cursor().copy(
                "COPY jobs_delivery (subscription_id, part, message_id, published_at, event_id, key) FROM STDIN"
            ) as stream:
                stream.write(delivery_rows)
            session.commit()
        return count / (time.perf_counter() - began)
