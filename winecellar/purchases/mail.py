"""The purchase-mail subscription: the last step, which nothing undoes. To the buyer and to the merchant.

Guarantee: a mail tells only of what is so when it is handed over: of a sale that stands, of a refund that was made; its
Message-ID and its bytes are the same on every try. The step is over when each mail was sent, or cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from jobs.database import run
from jobs.mail.transport import REFUSED, SENT, stable_message_id
from jobs.messages import Message
from winecellar.purchases import books, saga
from winecellar.purchases.books import Outcome
from winecellar.purchases.models import Purchase, PurchaseMail
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
SETTLE = """
UPDATE purchases_purchasemail SET state = became.state, settled_at = %s
FROM unnest(%s::bigint[], %s::text[]) AS became (id, state)
WHERE purchases_purchasemail.id = became.id AND purchases_purchasemail.state = 'queued'
"""
WAITING = "SELECT DISTINCT purchase_id FROM purchases_purchasemail WHERE purchase_id = ANY(%s) AND state = 'queued'"
SUBJECTS = {
    Kind.BOUGHT: "You bought {what}: {total}",
    Kind.SOLD: "Sold: {what}, {total}",
    Kind.REFUNDED: "Refunded: {total} for {what}",
}


def check(message: Message) -> None:
    """Raises PermanentError for a command that names nothing."""
    message.number("purchase_mail_id")


def prepare(messages: Sequence[Message]) -> list[EmailMultiAlternatives | None]:
    """The mail for each command; None where it was settled, is not true any more, or has nobody to go to."""
    ids = [message.number("purchase_mail_id") for message in messages]
    queued = PurchaseMail.objects.filter(pk__in=ids, state=PurchaseMail.State.QUEUED)
    rows = queued.select_related("purchase__buyer", "purchase__item__merchant__seller").in_bulk()
    return [compose(rows[pk]) if pk in rows else None for pk in ids]


def record(pairs: Sequence[tuple[Message, str | None]]) -> None:
    """Settle the mails, and the purchases whose last one it was."""
    now = timezone.now()
    became = {message.number("purchase_mail_id"): OF_RESULT[result].value for message, result in pairs}
    # The purchases first, as everybody locks them; so of two mails that are settled at once the second sees the first.
    of_mails = PurchaseMail.objects.filter(pk__in=list(became)).values("purchase")
    rows = books.locked(Purchase.objects.filter(pk__in=of_mails))
    run(SETTLE, [now, list(became), list(became.values())], keep_plan=False)
    waiting = {pk for (pk,) in run(WAITING, [[row.pk for row in rows]], keep_plan=False).fetchall()}
    done = [row for row in rows if row.state == State.NOTIFYING and row.pk not in waiting]
    books.apply([Outcome(row.pk, Event.NOTIFIED) for row in done], now=now, rows=done)


def compose(row: PurchaseMail) -> EmailMultiAlternatives | None:
    """The same bytes each time, since a provider that knows the key compares."""
    purchase, kind = row.purchase, Kind(row.kind)
    to = _address(purchase, kind)
    if not to or purchase.state not in TRUE_IN[kind]:
        return None
    bottles = f"{purchase.quantity} bottle{'s' if purchase.quantity > 1 else ''}"
    context: dict[str, Any] = {
        "kind": kind.value,
        "purchase": purchase,
        "bottles": bottles,
        "name": purchase.buyer.get_short_name() if purchase.buyer else "",
        "unit": in_money(purchase.unit_price, purchase.currency),
        "total": in_money(purchase.amount, purchase.currency),
        "residue": saga.CHARGE.residue,
        "url": settings.SITE_URL + reverse("purchase", args=[purchase.pk]),
        "buyer": purchase.buyer.email if purchase.buyer else "somebody who has left since",
    }
    what = " ".join(f"{bottles} of {purchase.wine_name}".split())  # a name cannot end the header
    mail = EmailMultiAlternatives(
        subject=SUBJECTS[kind].format(what=what, total=context["total"])[: settings.MAIL_SUBJECT_LONGEST],
        body=render_to_string("purchases/mail/purchase.txt", context),
        from_email=settings.MAIL_FROM,
        to=[to],
        headers={
            "Message-ID": stable_message_id(f"{purchase.reference}-{kind.value}"),
            "Auto-Submitted": "auto-generated",
        },
    )
    mail.attach_alternative(render_to_string("purchases/mail/purchase.html", context), "text/html")
    return mail


def _address(purchase: Purchase, kind: PurchaseMail.Kind) -> str:
    if kind is Kind.SOLD:
        seller = getattr(purchase.item.merchant, "seller", None)
        return seller.orders_to if seller else ""
    return purchase.buyer.email if purchase.buyer else ""
