"""Stripe behind payments.Provider, by its own library: PaymentIntents, refunds, and its hosted page for cards.

Guarantee: a charge is two requests, so that no answer need ever be guessed: an intent is opened, which moves no money,
and confirmed. Stripe lets an intent succeed once, so a repeated confirmation never charges again; what became of one
is read from the intent. Every exchange ends within PAYMENT_TIMEOUT. No card's number ever reaches us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import requests
import stripe
from django.conf import settings

from jobs.errors import AwayError, PermanentError
from jobs.mail.answers import retry_after
from jobs.mail.deadline import Deadline
from jobs.mail.over_http import Watched
from winecellar.payment_provider import Account
from winecellar.purchases.facts import Card, Charge, Payment, Refund, Seen
from winecellar.purchases.money import amount_of, units

stripe.enable_telemetry = False  # how long each request took, sent with the next: theirs to measure
_CHARGES = {
    "succeeded": Charge.CHARGED,
    "processing": Charge.PENDING,
    "canceled": Charge.CANCELLED,
    "requires_confirmation": Charge.OPEN,
    "requires_payment_method": Charge.OPEN,  # or declined: then there is an error beside it
}
_REFUNDS = {"succeeded": "made", "pending": "pending", "requires_action": "pending"}
# What the fee and the refunds are told with.
_MORE = ["latest_charge.balance_transaction", "latest_charge.refunds"]
# Stripe answers a key as it did the first time, for a day, also with a 500. Then the intent says what is so, and where
# nothing happened the next key is tried. So many: a provider that fails each time is away, and asked again later.
MOST_KEYS = 3
REASONS = {
    "insufficient_funds": "There is not enough money on the card.",
    "expired_card": "The card has expired.",
    "authentication_required": "Your bank wants to ask you itself, which it cannot do here. Use another card.",
    "lost_card": "The bank declined it.",  # as Stripe asks: a thief need not know that it is known
    "stolen_card": "The bank declined it.",
}
DECLINED = "The bank declined it."
UNKNOWN_CARD = "The card is no longer known to the payment provider. Add one again."


class StripePayments:
    """For one thread."""

    def __init__(self, account: Account) -> None:
        self._deadline = Deadline()
        session = requests.Session()
        for scheme in ("https://", "http://"):
            session.mount(scheme, Watched(self._deadline))
        session.max_redirects = 0
        seconds = settings.PAYMENT_TIMEOUT.total_seconds()
        self._client = stripe.StripeClient(
            account.secret_key,
            base_addresses={"api": account.api_base},
            max_network_retries=0,  # the queue tries again, and looks first
            http_client=stripe.RequestsClient(timeout=seconds, session=session),
        )

    # --- Charging -----------------------------------------------------------------------------------------------

    def look(self, payment: Payment) -> Seen | None:
        if payment.intent_id:
            return self._retrieve(payment.intent_id)
        # The answer to its opening was lost: it is found among the customer's, which Stripe lists as they are now.
        with self._asking():
            listed = self._client.v1.payment_intents.list({"customer": payment.customer_id, "limit": 100})
            found = next((each.id for each in listed.auto_paging_iter() if _is_of(each, payment)), None)
        return self._retrieve(found) if found else None

    def open(self, payment: Payment) -> Seen:
        def create(key: str) -> Any:
            return self._client.v1.payment_intents.create(
                {
                    "amount": units(payment.amount, payment.currency),
                    "currency": payment.currency.lower(),
                    "customer": payment.customer_id,
                    "payment_method": payment.method_id,
                    "allowed_payment_method_types": ["card"],
                    "description": payment.description,
                    "metadata": {"purchase": payment.reference},
                },
                {"idempotency_key": key},
            )

        try:
            return _seen(self._keyed(f"{payment.reference}-open", create))
        except _UnknownThingError:
            return Seen(Charge.DECLINED, "", reason=UNKNOWN_CARD)

    def charge(self, payment: Payment, intent_id: str) -> Seen:
        def confirm(key: str) -> Any:
            return self._client.v1.payment_intents.confirm(
                intent_id, {"off_session": True, "expand": _MORE}, {"idempotency_key": key}
            )

        def settled() -> Any:
            seen = self._retrieve(intent_id)
            return None if seen.charge is Charge.OPEN else seen

        try:
            return _seen(self._keyed(f"{payment.reference}-charge", confirm, settled))
        except stripe.CardError as error:
            return Seen(Charge.DECLINED, intent_id, reason=_reason(error))
        except _WrongStateError:  # charged, or cancelled, by an earlier request
            return self._retrieve(intent_id)
        except _UnknownThingError:
            return Seen(Charge.DECLINED, intent_id, reason=UNKNOWN_CARD)

    def cancel(self, payment: Payment, intent_id: str) -> Seen:
        """Without a key: cancelling twice is cancelling."""
        try:
            with self._asking():
                return _seen(self._client.v1.payment_intents.cancel(intent_id, {"expand": _MORE}))
        except _WrongStateError:
            return self._retrieve(intent_id)

    # --- Giving back --------------------------------------------------------------------------------------------

    def refund(self, payment: Payment, intent_id: str) -> Seen:
        """All of it. Stripe gives back no more than was taken, whatever the key."""

        def create(key: str) -> Any:
            return self._client.v1.refunds.create(
                {"payment_intent": intent_id, "metadata": {"purchase": payment.reference}}, {"idempotency_key": key}
            )

        def settled() -> Any:
            seen = self._retrieve(intent_id)
            return seen if len(seen.refunds) > len(before.refunds) else None

        # What failed at the bank is tried again under a key of its own.
        before = self._retrieve(intent_id)
        if any(refund.state != "failed" for refund in before.refunds):
            return before
        with suppress(_WrongStateError):  # by an earlier request
            self._keyed(f"{payment.reference}-refund-{len(before.refunds) + 1}", create, settled)
        return self._retrieve(intent_id)

    # --- Cards --------------------------------------------------------------------------------------------------

    def begin_card(self, *, reference: str, customer_id: str, back_to: str) -> tuple[str, str]:
        def create(key: str) -> Any:
            return self._client.v1.customers.create({"metadata": {"person": reference}}, {"idempotency_key": key})

        if not customer_id:
            customer_id = self._keyed(f"{reference}-customer", create).id
        with self._asking():
            session = self._client.v1.checkout.sessions.create(
                {
                    "mode": "setup",
                    "allowed_payment_method_types": ["card"],
                    "customer": customer_id,
                    "success_url": back_to + "?session_id={CHECKOUT_SESSION_ID}",
                    "cancel_url": back_to,
                }
            )
            return customer_id, session.url or ""

    def finish_card(self, session_id: str) -> Card | None:
        try:
            with self._asking():
                session: Any = self._client.v1.checkout.sessions.retrieve(
                    session_id, {"expand": ["setup_intent.payment_method"]}
                )
        except _UnknownThingError:
            return None
        setup = session.setup_intent
        if session.status != "complete" or setup is None or setup.status != "succeeded":
            return None
        card = setup.payment_method.card
        return Card(session.customer, setup.payment_method.id, f"{card.brand.title()} ending in {card.last4}")

    # --- Asking -------------------------------------------------------------------------------------------------

    def _retrieve(self, intent_id: str) -> Seen:
        try:
            with self._asking():
                return _seen(self._client.v1.payment_intents.retrieve(intent_id, {"expand": _MORE}))
        except _UnknownThingError as error:  # another account's key: a person must see it
            raise PermanentError("payment provider: does not know the intent") from error

    def _keyed(self, key: str, ask: Callable[[str], Any], settled: Callable[[], Any] = lambda: None) -> Any:
        """Ask under a key. A failure that Stripe only repeats says nothing new: look, and if nothing came of it, ask
        under the next one."""
        for number in range(1, MOST_KEYS + 1):
            try:
                with self._asking():
                    return ask(key if number == 1 else f"{key}-{number}")
            except _RepeatedError:
                if (found := settled()) is not None:
                    return found
        raise AwayError("payment provider: repeats a failure")

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """What happens inside ends in time, and raises what it means: ours, or a CardError."""
        try:
            with self._deadline.within(settings.PAYMENT_TIMEOUT.total_seconds()):
                yield
        except stripe.StripeError as error:
            meaning = _meaning(error)
            if meaning is error:
                raise
            raise meaning from error
        except TimeoutError as error:
            raise AwayError("payment provider: no answer in time") from error


class _RepeatedError(Exception):
    """A 500 that was stored under its key."""


class _WrongStateError(Exception):
    """The intent or the charge is past what was asked for."""


class _UnknownThingError(Exception):
    """A card or a session that Stripe does not know."""


_PAST = {"payment_intent_unexpected_state", "charge_already_refunded"}


def _meaning(error: stripe.StripeError) -> Exception:
    """The reasons hold nothing that the provider said, but for statuses and codes."""
    status, headers = error.http_status, error.headers or {}
    match error:
        case stripe.CardError():
            return error
        case stripe.APIConnectionError():
            return AwayError("payment provider: no answer")
        case stripe.IdempotencyError() if status == 409:  # the first request under this key is still at work
            return AwayError("payment provider: 409", retry_after=1.0, whole=False)
        case stripe.InvalidRequestError(code=code) if code in _PAST:
            return _WrongStateError(code)
        case stripe.InvalidRequestError(code="resource_missing"):
            return _UnknownThingError(error.param)
        case stripe.IdempotencyError() | stripe.InvalidRequestError():
            return PermanentError(f"payment provider: {status} {error.code or ''}".rstrip())
    if headers.get("Idempotent-Replayed") == "true" and status is not None and status >= 500:
        return _RepeatedError(status)
    # Whatever else would meet every purchase alike: a server in trouble, too many requests, a key that is not accepted.
    return AwayError(f"payment provider: {status or type(error).__name__}", retry_after=retry_after(headers))


def _is_of(intent: Any, payment: Payment) -> bool:
    return getattr(intent.metadata, "purchase", None) == payment.reference


def _seen(intent: Any) -> Seen:
    if isinstance(intent, Seen):
        return intent
    currency = intent.currency.upper()
    charge = _CHARGES.get(intent.status, Charge.DECLINED)  # requires_action: the buyer is not here
    reason = ""
    if intent.status == "requires_payment_method" and getattr(intent, "last_payment_error", None):
        charge, reason = Charge.DECLINED, _said(intent.last_payment_error)
    elif charge is Charge.DECLINED:
        reason = REASONS["authentication_required"]
    latest = getattr(intent, "latest_charge", None)
    latest = None if isinstance(latest, str) else latest
    balance = getattr(latest, "balance_transaction", None)
    balance = None if isinstance(balance, str) else balance
    refunds = getattr(latest, "refunds", None)
    return Seen(
        charge,
        intent.id,
        taken=amount_of(intent.amount_received, currency),
        currency=currency,
        fee=amount_of(balance.fee, currency) if balance and balance.currency == intent.currency else None,
        refunds=tuple(
            Refund(each.id, amount_of(each.amount, currency), _REFUNDS.get(each.status, "failed"))
            for each in (refunds.data if refunds else [])
        ),
        reason=reason,
    )


def _reason(error: stripe.CardError) -> str:
    said: Any = error.error
    return REASONS.get(getattr(said, "decline_code", None) or error.code or "", DECLINED)


def _said(said: Any) -> str:
    return REASONS.get(getattr(said, "decline_code", None) or getattr(said, "code", None) or "", DECLINED)
