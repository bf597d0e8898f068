"""What is in the database and at the mail provider when a run has ended, for checks.py. Reads, and reads only."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg

from alerts.mail import message_id
from alerts.models import Notification
from tests.chaos.checks import Effect, Facts, Letter, Logged, Mail

LEFT = "SELECT s.name, count(*) FROM jobs_delivery d JOIN jobs_subscription s ON s.id = d.subscription_id GROUP BY 1"
# Price events of an empty market are all prices: what a wine's history has is what the subscription did.
EFFECTS = {
    "price-history": "SELECT event_id, wine_id, NULL FROM pricing_pricehistory ORDER BY id",
    "chaos-strict": "SELECT event_id, key, seq FROM chaos_effect WHERE key <> 'nap' ORDER BY id",
    "chaos-naps": "SELECT event_id, event_id, seq FROM chaos_effect WHERE key = 'nap' ORDER BY id",
}
LETTERS = """
SELECT id, subscription_name, event_id, cause, error_class, receive_count, failures, outcome FROM jobs_deadletter
"""


def gather(session: psycopg.Connection, mails: Path) -> Facts:
    def rows(sql: str) -> list[tuple]:
        return session.execute(sql).fetchall()

    types = {name: set(types) for name, types in rows("SELECT name, message_types FROM jobs_subscription")}
    ledger: dict[str, set[str]] = {name: set() for name in types}
    with session.transaction(), session.cursor("ledger") as cursor:
        cursor.itersize = 20_000
        cursor.execute("SELECT consumer_name, event_id FROM processed_messages")
        for name, event_id in cursor:
            ledger.setdefault(name, set()).add(event_id)
    return Facts(
        log={event_id: Logged(*rest) for event_id, *rest in rows("SELECT event_id, id, type, key FROM jobs_message")},
        types=types,
        ledger=ledger,
        effects={name: [Effect(*row) for row in rows(sql)] for name, sql in EFFECTS.items()},
        letters=[
            Letter(*row[:6], tuple((each["receive"], each["error_class"]) for each in row[6]), row[7])
            for row in rows(LETTERS)
        ],
        mail_keys=mail_keys(),
        mails=taken(mails),
        audit=[(by, tuple(ids)) for by, ids in rows("SELECT by, letter_ids FROM jobs_audit WHERE action = 'redrive'")],
        offers={
            (merchant, wine): f"{price:.2f}"
            for merchant, wine, price in rows("SELECT merchant_id, wine_id, price_usd FROM pricing_offer")
        },
        alerts={id_ for (id_,) in rows("SELECT id FROM alerts_alert")},
        people={id_ for (id_,) in rows("SELECT id FROM accounts_user")},
        left=dict(rows(LEFT)),
    )


def mail_keys() -> dict[str, str]:
    """Of each notification the key of its mail, and what became of it."""
    some = Notification.objects.only("alert_id", "event_id", "state")
    return {message_id(each).strip("<>"): each.state for each in some.iterator()}


def taken(path: Path) -> list[Mail]:
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return [Mail(line["key"].strip("<>"), ", ".join(line["to"] or ()), line["at"]) for line in lines]
