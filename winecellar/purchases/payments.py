"""What we ask of a payment provider, and what it says: the one interface. stripe_payments.py is behind it.

Guarantee of every provider: `open` moves no money; one intent is charged at most once, whatever is asked how often; an
intent that is cancelled is never charged; what is looked up is what is so. Answers are facts (Seen); what is no
answer is an AwayError. Nothing here touches the database, so it may run in a pool's thread.
"""

from __future__ import annotations

import threading
from typing import Protocol

from django.conf import settings

from winecellar.payment_provider import Account
from winecellar.purchases.facts import Card, Payment, Seen


class Provider(Protocol):
    """Each raises AwayError where there was no answer, and PermanentError where asking again is of no use."""

    def look(self, payment: Payment) -> Seen | None:
        """How it stands, or None where the provider has never heard of it."""

    def open(self, payment: Payment) -> Seen:
        """Prepare a charge. Moves no money."""

    def charge(self, payment: Payment, intent_id: str) -> Seen:
        """Take the money."""

    def cancel(self, payment: Payment, intent_id: str) -> Seen:
        """Never charge it. It may turn out to be charged already."""

    def refund(self, payment: Payment, intent_id: str) -> Seen:
        """Give back all of it."""

    def begin_card(self, *, reference: str, customer_id: str, back_to: str) -> tuple[str, str]:
        """A page of the provider's on which somebody gives a card: the customer's id and the page's address."""

    def finish_card(self, session_id: str) -> Card | None:
        """The card that was given there; None if none was."""


class NotSetUpError(Exception):
    """There is no payment provider, so nothing is sold."""


_kept = threading.local()


def provider() -> Provider:
    """This thread's own, by the settings it was made from. Raises NotSetUpError."""
    account: Account | None = settings.PAYMENTS
    if account is None:
        raise NotSetUpError("PAYMENTS_URL names no payment provider.")
    if getattr(_kept, "account", None) != account:
        from winecellar.purchases.stripe_payments import StripePayments  # noqa: PLC0415  (a second to load)

        _kept.account, _kept.provider = account, StripePayments(account)
    found: Provider = _kept.provider
    return found
