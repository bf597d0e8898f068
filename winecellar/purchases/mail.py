"""The purchase-mail subscription: the last step, which nothing undoes. To the buyer and to the merchant.

Guarantee: a mail tells only of what is so when it is handed over: of a sale that stands, of a refund that was made; its
Message-ID and its bytes are the same on every try. The step is over when each mail was sent, or cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from jobs.database import by_index, pipelined, run
from jobs.mail.transport import REFUSED, SENT, stable_message_id
from jobs.messages import Message
from winecellar.purchases import books, saga
from winecellar.purchases.books import Outcome
from winecellar.purchases.models import Purchase, PurchaseMail
from winecellar.purchases.rows import lock_sql, read
from winecellar.purchases.rules import Event, State
from winecellar.templatetags.cellar import in_money

Kind = PurchaseMail.Kind
OF_RESULT = {
    SENT: PurchaseMail.State.SENT,
    REFUSED: PurchaseMail.State.REFUSED,
    None: PurchaseMail.State.UNWANTED,
}
# In which states of its purchase a mail is true.
TRUE_IN = {
    Kind.BOUGHT: {State.NOTIFYING, State.COMPLETED},
    Kind.SOLD: {State.NOTIFYING, State.COMPLETED},
    Kind.REFUNDED: {State.REFUNDED},
}
TELL = """
SELECT mail.id, mail.kind, purchase.id, purchase.reference, purchase.state, purchase.merchant_name, purchase.wine_name,
    purchase.quantity, purchase.unit_price, purchase.amount, purchase.currency, purchase.card_label,
    coalesce(buyer.email, ''), coalesce(buyer.name, ''), coalesce(seller.orders_to, '')
FROM purchases_purchasemail mail
JOIN purchases_purchase purchase ON purchase.id = mail.purchase_id
JOIN purchases_stockitem item ON item.id = purchase.item_id
LEFT JOIN purchases_seller seller ON seller.merchant_id = item.merchant_id
LEFT JOIN accounts_user buyer ON buyer.id = purchase.buyer_id
WHERE mail.id = ANY(%s) AND mail.state = 'queued'
"""
# The purchases first, as everybody locks them; so of two mails that are settled at once the second sees the first.
LOCK = lock_sql(Purchase, "ARRAY(SELECT purchase_id FROM purchases_purchasemail WHERE id = ANY(%s))")
SETTLE = """
UPDATE purchases_purchasemail SET state = became.state, settled_at = %s
FROM unnest(%s::bigint[], %s::text[]) AS became (id, state)
WHERE purchases_purchasemail.id = became.id AND purchases_purchasemail.state = 'queued'
"""
WAITING = """
SELECT purchase_id FROM purchases_purchasemail
WHERE purchase_id = ANY(ARRAY(SELECT purchase_id FROM purchases_purchasemail WHERE id = ANY(%s))) AND state = 'queued'
"""
SUBJECTS = {
    Kind.BOUGHT: "You bought {what}: {total}",
    Kind.SOLD: "Sold: {what}, {total}",
    Kind.REFUNDED: "Refunded: {total} for {what}",
}


def check(message: Message) -> None:
    """Raises PermanentError for a command that names nothing."""
    message.number("purchase_mail_id")


@dataclass(frozen=True)
class Told:
    """A mail that is queued, and what it tells of. An address is empty where there is nobody any more."""

    id: int
    kind: str
    purchase: int
    reference: str
    state: str
    merchant_name: str
    wine_name: str
    quantity: int
    unit_price: Decimal
    amount: Decimal
    currency: str
    card_label: str
    buyer: str
    buyer_name: str
    seller: str


def prepare(messages: Sequence[Message]) -> list[EmailMultiAlternatives | None]:
    """The mail for each command; None where it was settled, is not true any more, or has nobody to go to."""
    ids = [message.number("purchase_mail_id") for message in messages]
    with pipelined(), by_index():
        telling = run(TELL, [ids])
    rows = {row[0]: Told(*row) for row in telling.fetchall()}
    return [compose(rows[pk]) if pk in rows else None for pk in ids]


def record(pairs: Sequence[tuple[Message, str | None]]) -> None:
    """Settle the mails, and the purchases whose last one it was."""
    now = timezone.now()
    became = {message.number("purchase_mail_id"): OF_RESULT[result].value for message, result in pairs}
    ids = list(became)
    with pipelined(), by_index():
        locking = run(LOCK, [ids])
        run(SETTLE, [now, ids, list(became.values())])
        waiting = run(WAITING, [ids])
    still = {pk for (pk,) in waiting.fetchall()}
    rows = read(Purchase, locking)
    done = [row for row in rows if row.state == State.NOTIFYING and row.pk not in still]
    books.apply([Outcome(row.pk, Event.NOTIFIED) for row in done], now=now, rows=done)


def compose(row: Told) -> EmailMultiAlternatives | None:
    """The same bytes each time, since a provider that knows the key compares."""
    kind = Kind(row.kind)
    to = row.seller if kind is Kind.SOLD else row.buyer
    if not to or row.state not in TRUE_IN[kind]:
        return None
    bottles = f"{row.quantity} bottle{'s' if row.quantity > 1 else ''}"
    total = in_money(row.amount, row.currency)
    context: dict[str, Any] = {
        "kind": kind.value,
        "purchase": row,
        "bottles": bottles,
        "name": row.buyer_name or row.buyer.partition("@")[0],  # a User's short name, without the User
        "unit": in_money(row.unit_price, row.currency),
        "total": total,
        "residue": saga.CHARGE.residue,
        "url": settings.SITE_URL + reverse("purchase", args=[row.purchase]),
        "buyer": row.buyer or "somebody who has left since",
    }
    what = " ".join(f"{bottles} of {row.wine_name}".split())  # a name cannot end the header
    mail = EmailMultiAlternatives(
        subject=SUBJECTS[kind].format(what=what, total=total)[: settings.MAIL_SUBJECT_LONGEST],
        body=render_to_string("purchases/mail/purchase.txt", context),
        from_email=settings.MAIL_FROM,
        to=[to],
        headers={
            "Message-ID": stable_message_id(f"{row.reference}-{kind.value}"),
            "Auto-Submitted": "auto-generated",
        },
    )
    mail.attach_alternative(render_to_string("purchases/mail/purchase.html", context), "text/html")
    return mail
