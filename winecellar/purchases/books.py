"""The one writer of purchases under way: outcomes in, and in the caller's transaction state, bottles, money, log, mails
and the next commands, as rules.py decides.

Guarantee: a purchase's state, the stock and what is asked for next change together or not at all; the same outcome
twice changes nothing more. Locks the purchases in id order, then their stock in id order. Called by the handlers, the
minute's job and the services; never while a provider is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import structlog
from django.conf import settings
from django.db.models import QuerySet

from jobs.database import by_index, pipelined, run
from jobs.messages import Message, NewMessage, dumps
from jobs.outbox import follow_up, publish
from winecellar.purchases.events import SEND_PURCHASE_EMAIL
from winecellar.purchases.facts import Seen
from winecellar.purchases.models import Entry, Money, Purchase, PurchaseMail, StockItem
from winecellar.purchases.rows import LOCK, LOCK_STOCK, WRITE, read
from winecellar.purchases.rules import Bottles, Event, Mails, Next, State, decide

log = structlog.get_logger(__name__)
MAILS = {
    Mails.NONE: (),
    Mails.SALE: (PurchaseMail.Kind.BOUGHT, PurchaseMail.Kind.SOLD),
    Mails.REFUND: (PurchaseMail.Kind.REFUNDED,),
}
# From here on no bottles move but on a person's word.
_SETTLED = {State.NOTIFYING, State.COMPLETED, State.REFUNDING, State.REFUNDED, State.REFUND_UNCLEAR, State.RESOLVED}


@dataclass(frozen=True)
class Outcome:
    """`seen`: what the provider said, where it was asked. `says`: for the log. `by`: the person who decided. `cause`:
    the message that brought it, of which what is asked for next is the consequence."""

    purchase_id: int
    event: Event
    seen: Seen | None = None
    says: str = ""
    by: str = ""
    cause: Message | None = None


def locked(purchases: QuerySet[Purchase], *, most: int | None = None, skip: bool = False) -> list[Purchase]:
    """In the order in which everybody locks them."""
    return list(purchases.select_for_update(no_key=True, of=("self",), skip_locked=skip).order_by("pk")[:most])


def command(purchase_id: int, name: str, cause: Message | None = None) -> NewMessage:
    body = {"purchase_id": purchase_id}
    return NewMessage(name, f"purchase:{purchase_id}", body, attributes=_following(cause))


def _following(cause: Message | None) -> dict[str, str]:
    return follow_up(cause.attributes, caused_by=cause.event_id) if cause else {}


def apply(outcomes: Sequence[Outcome], *, now: datetime, rows: Sequence[Purchase] | None = None) -> None:
    """Write what follows. `rows`: their purchases, where the caller has them `locked` already.

    Raises RefusedError (and changes nothing) for what a person cannot have done now.
    """
    if not outcomes:
        return
    found, stock = _locked(sorted({each.purchase_id for each in outcomes}), rows)
    purchases, items = {row.pk: row for row in found}, {row.pk: row for row in stock}
    changes = _Changes(now)
    for outcome in outcomes:
        purchase = purchases[outcome.purchase_id]
        item = items.get(purchase.item_id)
        there = item is not None and item.free >= purchase.quantity
        follows = decide(State(purchase.state), outcome.event, there=there)
        changes.note(purchase, outcome, follows)
        if item is not None:
            _move(item, purchase.quantity, follows.bottles)
        purchase.state = follows.state
    changes.write(purchases.values(), items.values())


def _locked(wanted: list[int], rows: Sequence[Purchase] | None) -> tuple[Sequence[Purchase], Sequence[StockItem]]:
    """The purchases, and after them the stock of those whose bottles may still move."""
    if rows is not None and all(row.state in _SETTLED for row in rows):
        return rows, []
    with pipelined(), by_index():
        purchases = run(LOCK, [wanted])
        stock = run(LOCK_STOCK, [wanted, [state.value for state in _SETTLED]])
    return read(Purchase, purchases), read(StockItem, stock)


def _move(item: StockItem, quantity: int, bottles: Bottles) -> None:
    if bottles in (Bottles.RELEASE, Bottles.SELL):
        item.reserved -= quantity
    if bottles in (Bottles.SELL, Bottles.TAKE):
        item.on_hand -= quantity


class _Changes:
    """What one transaction writes, gathered so that it is written at once."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.entries: list[dict[str, Any]] = []
        self.money: list[dict[str, Any]] = []
        self.mails: list[dict[str, Any]] = []
        self.commands: list[NewMessage] = []
        self.later: list[NewMessage] = []
        self.causes: dict[int, Message | None] = {}  # by the purchase
        self.moved = False

    def note(self, purchase: Purchase, outcome: Outcome, follows: Next) -> None:
        changed = follows.state != purchase.state
        if outcome.event is Event.NO_ANSWER:
            kind = Entry.Kind.LOST
        else:
            kind = Entry.Kind.CHANGED if changed else Entry.Kind.ANSWERED
        self.entries.append(
            {
                "purchase": purchase.pk,
                "kind": kind.value,
                "event": outcome.event.value,
                "came_from": purchase.state if changed else "",
                "state": follows.state.value,
                "says": outcome.says,
                "by": outcome.by,
            }
        )
        if changed:
            log.info("purchase.changed", purchase=purchase.pk, by=outcome.event.value, state=follows.state.value)
            purchase.changed_at = self.now
        if outcome.seen is not None:
            purchase.asked_at = None
            purchase.intent_id = outcome.seen.intent_id or purchase.intent_id
            purchase.reason = (outcome.seen.reason or purchase.reason)[:200]
            self._note_money(purchase, outcome.seen)
        self.moved = self.moved or follows.bottles is not Bottles.KEEP
        self.mails += [{"purchase": purchase.pk, "kind": mail.value} for mail in MAILS[follows.mails]]
        self.causes[purchase.pk] = outcome.cause
        if follows.command:
            asked_for = command(purchase.pk, follows.command, outcome.cause)
            (self.later if follows.later else self.commands).append(asked_for)

    def _note_money(self, purchase: Purchase, seen: Seen) -> None:
        def moved(kind: Money.Kind, provider_id: str, amount: Decimal, fee: Decimal | None = None) -> None:
            self.money.append(
                {
                    "purchase": purchase.pk,
                    "kind": kind.value,
                    "provider_id": provider_id,
                    "amount": amount,
                    "currency": seen.currency,
                    "fee": fee,
                }
            )

        if seen.taken:
            moved(Money.Kind.CHARGE, seen.intent_id, seen.taken, seen.fee)
        for refund in seen.refunds:
            if refund.state == "made":
                moved(Money.Kind.REFUND, refund.refund_id, refund.amount)
            elif refund.state == "failed" and self._was_made(purchase, refund.refund_id):
                moved(Money.Kind.RETURNED, refund.refund_id, refund.amount)

    @staticmethod
    def _was_made(purchase: Purchase, refund_id: str) -> bool:
        return Money.objects.filter(purchase=purchase, kind=Money.Kind.REFUND, provider_id=refund_id).exists()

    def write(self, purchases: Iterable[Purchase], items: Iterable[StockItem]) -> None:
        stock = [{"id": row.pk, "on_hand": row.on_hand, "reserved": row.reserved} for row in items]
        became = {
            "purchases": [_became(row) for row in purchases],
            "stock": stock if self.moved else [],
            "entries": self.entries,
            "money": self.money,
            "mails": self.mails,
        }
        with pipelined(), by_index():
            writing = run(WRITE, {"now": self.now, **{table: dumps(rows) for table, rows in became.items()}})
        self.commands += [
            NewMessage(
                SEND_PURCHASE_EMAIL,
                f"purchase:{purchase_id}",
                {"purchase_mail_id": mail_id},
                attributes=_following(self.causes[purchase_id]),
            )
            for mail_id, purchase_id in writing.fetchall()
        ]
        publish(self.commands)
        publish(self.later, delay=settings.PAYMENT_ASK_AGAIN)


def _became(row: Purchase) -> dict[str, Any]:
    return {
        "id": row.pk,
        "state": row.state,
        "changed_at": row.changed_at.isoformat(),
        "asked_at": row.asked_at and row.asked_at.isoformat(),
        "intent_id": row.intent_id,
        "reason": row.reason,
    }
