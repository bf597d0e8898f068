"""What is in the database and at both providers when a run has ended, for checks.py. Reads, and reads only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psycopg

from alerts.mail import message_id
from alerts.models import Notification
from jobs.mail.transport import stable_message_id
from tests.chaos.checks import Effect, Facts, Letter, Logged, Mail
from tests.chaos.sales import Bought, Movement, SalesFacts, Stock
from winecellar.purchases.money import amount_of

Rows = Callable[[str], list[tuple]]
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
PURCHASES = """
SELECT p.id, p.reference, p.token, p.item_id, p.quantity, p.unit_price, p.amount, p.currency, p.state,
    p.buyer_id IS NOT NULL, coalesce((
        SELECT json_agg(json_build_array(e.came_from, e.state) ORDER BY e.id) FROM purchases_entry e
        WHERE e.purchase_id = p.id AND e.came_from <> ''), '[]')
FROM purchases_purchase p ORDER BY p.id
"""
MONEY = """
SELECT m.kind, p.reference, m.amount, m.currency FROM purchases_money m JOIN purchases_purchase p ON p.id = purchase_id
"""
SALES_MAILS = (
    "SELECT p.reference, m.kind, m.state FROM purchases_purchasemail m JOIN purchases_purchase p ON p.id = purchase_id"
)
DECISIONS = "SELECT by, (details->>'purchase_id')::bigint, action FROM jobs_audit WHERE action LIKE 'purchase-%'"


def gather(session: psycopg.Connection, mails: Path, money: Path, stock: Mapping[int, int]) -> Facts:
    """`mails`, `money`: the providers' logs. `stock`: how many bottles there were at first."""

    def rows(sql: str) -> list[tuple]:
        return session.execute(sql).fetchall()

    types = {name: set(types) for name, types in rows("SELECT name, message_types FROM jobs_subscription")}
    ledger: dict[str, set[str]] = {name: set() for name in types}
    with session.transaction(), session.cursor("ledger") as cursor:
        cursor.itersize = 20_000
        cursor.execute("SELECT consumer_name, event_id FROM processed_messages")
        for name, event_id in cursor:
            ledger.setdefault(name, set()).add(event_id)
    took = taken(mails)
    sold = _sales(rows, took, money, stock)
    return Facts(
        log={event_id: Logged(*rest) for event_id, *rest in rows("SELECT event_id, id, type, key FROM jobs_message")},
        types=types,
        ledger=ledger,
        effects={name: [Effect(*row) for row in rows(sql)] for name, sql in EFFECTS.items()},
        letters=[
            Letter(*row[:6], tuple((each["receive"], each["error_class"]) for each in row[6]), row[7])
            for row in rows(LETTERS)
        ],
        mail_keys=mail_keys() | {sales_key(*names): state for names, state in sold.mails.items()},
        mails=took,
        audit=[(by, tuple(ids)) for by, ids in rows("SELECT by, letter_ids FROM jobs_audit WHERE action = 'redrive'")],
        offers={
            (merchant, wine): f"{price:.2f}"
            for merchant, wine, price in rows("SELECT merchant_id, wine_id, price_usd FROM pricing_offer")
        },
        alerts={id_ for (id_,) in rows("SELECT id FROM alerts_alert")},
        people={id_ for (id_,) in rows("SELECT id FROM accounts_user")},
        left=dict(rows(LEFT)),
        sales=sold,
    )


def _sales(rows: Rows, took: Sequence[Mail], money: Path, stock: Mapping[int, int]) -> SalesFacts:
    mails = {(reference, kind): state for reference, kind, state in rows(SALES_MAILS)}
    kinds = {sales_key(*names): names for names in mails}
    lines = map(json.loads, money.read_text().splitlines()) if money.exists() else ()
    return SalesFacts(
        purchases=[Bought(*row[:10], changes=tuple(map(tuple, row[10]))) for row in rows(PURCHASES)],
        stock={
            pk: Stock(stock[pk], on_hand, reserved)
            for pk, on_hand, reserved in rows("SELECT id, on_hand, reserved FROM purchases_stockitem")
        },
        ours=[Movement(*row) for row in rows(MONEY)],
        theirs=[
            Movement(line["kind"], line["purchase"] or "", amount_of(line["amount"], currency), currency)
            for line in lines
            for currency in [line["currency"].upper()]
        ],
        mails=mails,
        told=[kinds[mail.key] for mail in took if mail.key in kinds],
        audit=[(by, purchase, action.removeprefix("purchase-")) for by, purchase, action in rows(DECISIONS)],
    )


def sales_key(reference: str, kind: str) -> str:
    return stable_message_id(f"{reference}-{kind}").strip("<>")


def mail_keys() -> dict[str, str]:
    """Of each notification the key of its mail, and what became of it."""
    some = Notification.objects.only("alert_id", "event_id", "state")
    return {message_id(each).strip("<>"): each.state for each in some.iterator()}


def taken(path: Path) -> list[Mail]:
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return [Mail(line["key"].strip("<>"), ", ".join(line["to"] or ()), line["at"]) for line in lines]
