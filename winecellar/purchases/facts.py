"""What a payment provider knows about a payment, as it says, and what that means for the purchase. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from winecellar.purchases.events import CHECK_PAYMENT, REFUND_PURCHASE
from winecellar.purchases.rules import Event


class Charge(StrEnum):
    OPEN = "open"  # not charged, and could be
    PENDING = "pending"  # under way at the provider
    CHARGED = "charged"
    DECLINED = "declined"
    CANCELLED = "cancelled"  # never will be


@dataclass(frozen=True)
class Payment:
    """What is paid for. `reference` is ours and never used again: with the name of a step it is the idempotency key."""

    reference: str
    amount: Decimal
    currency: str
    customer_id: str
    method_id: str
    description: str
    intent_id: str = ""  # the provider's, once it is known


@dataclass(frozen=True)
class Refund:
    refund_id: str
    amount: Decimal
    state: str  # made, pending, failed


@dataclass(frozen=True)
class Seen:
    """How a payment stands. `taken` and `fee` are what the provider says, not what we asked; `reason` is for people."""

    charge: Charge
    intent_id: str
    taken: Decimal = Decimal(0)
    currency: str = ""
    fee: Decimal | None = None  # what the provider keeps, also when the money goes back
    refunds: tuple[Refund, ...] = ()
    reason: str = ""

    @property
    def given_back(self) -> Decimal:
        return sum((refund.amount for refund in self.refunds if refund.state == "made"), Decimal(0))


@dataclass(frozen=True)
class Card:
    """A card as the provider keeps it; `label` is what its owner knows it by: “Visa ending in 4242”."""

    customer_id: str
    method_id: str
    label: str


NEVER_OPENED = Seen(Charge.CANCELLED, "")  # nothing was opened, so nothing can be charged


def event_of(command: str, seen: Seen) -> Event | None:
    """What an answer to a command means; None where it says nothing new to CHECK_PAYMENT, which only asks."""
    if seen.taken and seen.given_back >= seen.taken:
        return Event.REFUND_MADE
    if seen.refunds and command in (REFUND_PURCHASE, CHECK_PAYMENT):
        if any(refund.state == "pending" for refund in seen.refunds):
            return Event.PENDING if command == REFUND_PURCHASE else None
        return Event.REFUND_FAILED
    if seen.charge in (Charge.OPEN, Charge.PENDING):
        return None if command == CHECK_PAYMENT else Event.PENDING
    return Event(seen.charge.value)
