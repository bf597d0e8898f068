"""The simulated provider's books: customers, cards, intents, refunds, keys, as Stripe keeps them. Pure of HTTP.

Guarantee: an intent is charged once at most and never after it was cancelled; no more goes back than was taken. Each
movement of money is a line in a file, if there is one, before anything is said about it. Threads may share it. Imports
no Django.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

FEE_PERCENT, FEE_FIXED = 29, 30  # 2.9 % and 30 cents, in thousandths and cents
Document = dict[str, Any]


class NotPossible(Exception):  # noqa: N818
    """What the provider answers instead: a status and an error."""

    def __init__(self, status: int, type_: str, code: str, **more: Any) -> None:
        super().__init__(code)
        self.status = status
        self.document = {"error": {"type": type_, "code": code, "message": code, **more}}


@dataclass
class Bank:
    log: Path | None = None
    customers: dict[str, Document] = field(default_factory=dict)
    cards: dict[str, Document] = field(default_factory=dict)
    intents: dict[str, Document] = field(default_factory=dict)
    refunds: dict[str, Document] = field(default_factory=dict)
    sessions: dict[str, Document] = field(default_factory=dict)
    events: list[Document] = field(default_factory=list)
    on_event: Callable[[Document], None] = lambda event: None

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self._numbers = count(time.time_ns() // 1_000_000)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers)}"

    # --- Cards --------------------------------------------------------------------------------------------------

    def add_customer(self, metadata: Document) -> Document:
        with self.lock:
            customer: Document = {"id": self.new_id("cus"), "object": "customer", "metadata": metadata}
            self.customers[customer["id"]] = customer
            return customer

    def add_card(self, customer: str, *, last4: str = "4242", brand: str = "visa", declines: str = "") -> Document:
        with self.lock:
            card: Document = {
                "id": self.new_id("pm"),
                "object": "payment_method",
                "customer": customer,
                "type": "card",
                "card": {"brand": brand, "last4": last4},
                "declines": declines,
            }
            self.cards[card["id"]] = card
            return card

    # --- Money --------------------------------------------------------------------------------------------------

    def open(self, asked: Document) -> Document:
        with self.lock:
            card = self.cards.get(asked["payment_method"])
            if card is None or asked["customer"] not in self.customers:
                raise NotPossible(404, "invalid_request_error", "resource_missing", param="payment_method")
            intent = {
                "id": self.new_id("pi"),
                "object": "payment_intent",
                "amount": int(asked["amount"]),
                "amount_received": 0,
                "currency": asked["currency"],
                "customer": asked["customer"],
                "payment_method": card["id"],
                "status": "requires_confirmation",
                "metadata": asked.get("metadata", {}),
                "latest_charge": None,
                "last_payment_error": None,
            }
            self.intents[intent["id"]] = intent
            return intent

    def confirm(self, intent_id: str, *, declined: bool = False, pending: bool = False) -> Document:
        with self.lock:
            intent = self._intent(intent_id)
            if intent["status"] not in {"requires_confirmation", "requires_payment_method"}:
                raise NotPossible(400, "invalid_request_error", "payment_intent_unexpected_state")
            code = self.cards[intent["payment_method"]]["declines"] or ("card_declined" if declined else "")
            if code:
                self.fail(intent_id, code)
                raise NotPossible(402, "card_error", "card_declined", decline_code=code)
            intent["last_payment_error"] = None
            if pending:
                intent["status"] = "processing"
                return intent
            return self.succeed(intent_id)

    def succeed(self, intent_id: str) -> Document:
        """The money is taken; also of what was pending."""
        with self.lock:
            intent = self._intent(intent_id)
            intent.update(
                status="succeeded",
                amount_received=intent["amount"],
                latest_charge={
                    "id": self.new_id("ch"),
                    "object": "charge",
                    "balance_transaction": {
                        "id": self.new_id("txn"),
                        "object": "balance_transaction",
                        "fee": intent["amount"] * FEE_PERCENT // 1_000 + FEE_FIXED,
                        "currency": intent["currency"],
                    },
                    "refunds": {"object": "list", "data": [], "has_more": False, "url": "/v1/refunds"},
                },
            )
            self._write("charge", intent["metadata"], intent["amount"], intent["currency"])
            self._tell("payment_intent.succeeded", intent)
            return intent

    def fail(self, intent_id: str, code: str) -> None:
        """The buyer's bank says no; also to what was pending."""
        with self.lock:
            intent = self._intent(intent_id)
            error = {"code": "card_declined", "decline_code": code, "type": "card_error", "message": code}
            intent.update(status="requires_payment_method", last_payment_error=error)
            self._tell("payment_intent.payment_failed", intent)

    def cancel(self, intent_id: str) -> Document:
        with self.lock:
            intent = self._intent(intent_id)
            if intent["status"] in {"succeeded", "processing"}:
                raise NotPossible(400, "invalid_request_error", "payment_intent_unexpected_state")
            if intent["status"] != "canceled":
                intent["status"] = "canceled"
                self._tell("payment_intent.canceled", intent)
            return intent

    def refund(self, intent_id: str, *, fails: bool = False, pending: bool = False) -> Document:
        with self.lock:
            intent = self._intent(intent_id)
            charge = intent["latest_charge"]
            if charge is None or any(each["status"] != "failed" for each in charge["refunds"]["data"]):
                raise NotPossible(400, "invalid_request_error", "charge_already_refunded")
            refund = {
                "id": self.new_id("re"),
                "object": "refund",
                "amount": intent["amount"],
                "currency": intent["currency"],
                "payment_intent": intent_id,
                "status": "failed" if fails else "pending" if pending else "succeeded",
            }
            charge["refunds"]["data"].append(refund)
            self.refunds[refund["id"]] = refund
            if refund["status"] == "succeeded":
                self._write("refund", intent["metadata"], intent["amount"], intent["currency"])
            self._tell("refund.created", refund)
            return refund

    def end_refund(self, refund_id: str, status: str) -> None:
        """What becomes of a pending refund, or of one that seemed well: the buyer's bank may send it back."""
        with self.lock:
            refund = self.refunds[refund_id]
            before, refund["status"] = refund["status"], status
            intent = self._intent(refund["payment_intent"])
            if status == "succeeded" and before != status:
                self._write("refund", intent["metadata"], intent["amount"], intent["currency"])
            if before == "succeeded" and status == "failed":
                self._write("returned", intent["metadata"], intent["amount"], intent["currency"])
            self._tell("refund.failed" if status == "failed" else "refund.updated", refund)

    def taken(self) -> dict[str, int]:
        """By reference of the purchase: what was taken and not given back, in cents."""
        with self.lock:
            kept: dict[str, int] = {}
            for intent in self.intents.values():
                refunds = intent["latest_charge"]["refunds"]["data"] if intent["latest_charge"] else []
                back = sum(refund["amount"] for refund in refunds if refund["status"] == "succeeded")
                reference = intent["metadata"].get("purchase", "")
                kept[reference] = kept.get(reference, 0) + intent["amount_received"] - back
            return kept

    def intents_of(self, customer: str) -> list[Document]:
        with self.lock:
            return [each for each in self.intents.values() if each["customer"] == customer]

    def _intent(self, intent_id: str) -> Document:
        if intent_id not in self.intents:
            raise NotPossible(404, "invalid_request_error", "resource_missing", param="intent")
        return self.intents[intent_id]

    def _write(self, kind: str, metadata: Document, amount: int, currency: str) -> None:
        if self.log:
            line = {"kind": kind, "purchase": metadata.get("purchase"), "amount": amount, "currency": currency}
            with self.log.open("a") as file:
                file.write(json.dumps({**line, "at": time.time()}) + "\n")

    def _tell(self, type_: str, thing: Document) -> None:
        event = {
            "id": self.new_id("evt"),
            "object": "event",
            "type": type_,
            "created": int(time.time()),
            "data": {"object": json.loads(json.dumps(thing))},  # as it was then
        }
        self.events.append(event)
        self.on_event(event)
