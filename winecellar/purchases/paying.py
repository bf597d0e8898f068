"""The purchase-payment subscription: what is asked of the payment provider, each thing by a command of its own.

Guarantee: no transaction and no lock is open while the provider is asked; that it is going to be asked is written down
before. Who asked before and does not know what became of it looks first, and asks again for the same charge only: a
purchase has one intent, and an intent is charged once at most. What is known is settled by books.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from jobs.database import by_index, pipelined, run
from jobs.errors import AwayError
from jobs.messages import Message, dumps
from winecellar.purchases import books, events, payments, rows
from winecellar.purchases.books import Outcome
from winecellar.purchases.facts import NEVER_OPENED, Charge, Payment, Seen, event_of
from winecellar.purchases.models import Purchase
from winecellar.purchases.payments import NotSetUpError, Provider
from winecellar.purchases.rules import Event, State

BREAKER = "payments"  # of everything that asks the provider
# In which states a command is still wanted. What is checked is asked for whatever the state: it changes nothing there.
WANTED = {
    events.CHARGE_PURCHASE: {State.CHARGING, State.ASKING},
    events.CALL_OFF_PURCHASE: {State.LAPSED, State.CALLING_OFF},
    events.REFUND_PURCHASE: {State.REFUNDING},
    events.CHECK_PAYMENT: set(State),
}

ASK = """
WITH asked AS (
    UPDATE purchases_purchase SET attempts = attempts + 1, asked_at = %(now)s WHERE id = ANY(%(ids)s)
)
INSERT INTO purchases_entry (purchase_id, kind, event, came_from, state, says, by, at)
SELECT made.purchase, 'asked', '', '', made.state, made.command, '', %(now)s
FROM jsonb_to_recordset(%(asked)s::jsonb) AS made (purchase bigint, state text, command text)
"""


@dataclass(frozen=True)
class Task:
    """`asked_before`: whether the provider may know the payment already."""

    command: str
    payment: Payment
    asked_before: bool


def check(message: Message) -> None:
    """Raises PermanentError for a command that names nothing."""
    message.number("purchase_id")


def prepare(messages: Sequence[Message]) -> list[Task | None]:
    """What is to be asked, for each command; None where that is no longer wanted. Writes down that it is asked."""
    now = timezone.now()
    with transaction.atomic():
        with pipelined(), by_index():
            locking = run(rows.LOCK, [sorted({message.number("purchase_id") for message in messages})])
        found = {row.pk: row for row in rows.read(Purchase, locking)}
        asked = [(message, found[pk]) for message in messages if (pk := message.number("purchase_id")) in found]
        asked = [(message, row) for message, row in asked if row.state in WANTED[message.type]]
        lost = {row.pk for _, row in asked if row.asked_at is not None}
        books.apply([Outcome(pk, Event.NO_ANSWER) for pk in sorted(lost)], now=now)
        notes = [{"purchase": row.pk, "state": row.state, "command": message.type} for message, row in asked]
        if notes:
            with pipelined(), by_index():
                run(ASK, {"now": now, "ids": [row.pk for _, row in asked], "asked": dumps(notes)})
    tasks = {message.id: Task(message.type, _payment(row), row.attempts > 0) for message, row in asked}
    return [tasks.get(message.id) for message in messages]


def perform(task: Task) -> Seen | None:
    """Ask. Raises AwayError where there was no answer: the next try looks first."""
    try:
        provider = payments.provider()
    except NotSetUpError as error:
        raise AwayError(str(error)) from error
    payment = task.payment
    seen = provider.look(payment) if task.asked_before or payment.intent_id else None
    match task.command:
        case events.CHARGE_PURCHASE:
            return _charge(provider, payment, seen)
        case events.CALL_OFF_PURCHASE:
            return _call_off(provider, payment, seen, asked_before=task.asked_before)
        case events.REFUND_PURCHASE if seen is not None and seen.taken > seen.given_back:
            return provider.refund(payment, seen.intent_id)
    return seen


def _charge(provider: Provider, payment: Payment, seen: Seen | None) -> Seen:
    if seen is None:
        seen = provider.open(payment)
    return provider.charge(payment, seen.intent_id) if seen.charge is Charge.OPEN else seen


def _call_off(provider: Provider, payment: Payment, seen: Seen | None, *, asked_before: bool) -> Seen:
    if seen is None and not asked_before:
        return NEVER_OPENED
    if seen is None:
        # Somebody was to open it, and may still be about to: whoever comes later under this key gets the one cancelled.
        seen = provider.open(payment)
    return provider.cancel(payment, seen.intent_id) if seen.charge is Charge.OPEN else seen


def record(pairs: Sequence[tuple[Message, Seen | None]]) -> None:
    """Settle what is known. No result: not wanted any more, or nothing to tell."""
    outcomes = []
    for message, seen in pairs:
        if seen is not None and (event := event_of(message.type, seen)) is not None:
            outcomes.append(Outcome(message.number("purchase_id"), event, seen, says=_says(seen), cause=message))
    books.apply(outcomes, now=timezone.now())


def _says(seen: Seen) -> str:
    """The evidence, for whoever looks into it later."""
    refunds = "".join(f", refund {each.refund_id} {each.state}" for each in seen.refunds)
    return f"{seen.intent_id or 'no intent'}: {seen.charge.value}{refunds}"[:500]


def _payment(row: Purchase) -> Payment:
    return Payment(
        reference=row.reference,
        amount=row.amount,
        currency=row.currency,
        customer_id=row.customer_id,
        method_id=row.method_id,
        description=f"{row.quantity} × {row.wine_name}, {row.merchant_name}",
        intent_id=row.intent_id,
    )
