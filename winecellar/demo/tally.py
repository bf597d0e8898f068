"""What the demo's merchants sent and what the feed said to it. Threads write, the main thread reads. No Django.

Guarantee: each event id is noted with the moment its 202 had arrived, before the screen or the summary sees it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

KEPT_COMPLAINTS = 5


@dataclass(frozen=True, slots=True)
class PriceTaken:
    """One price as the feed took it. `event_id` is None where nothing changed, or where the price was held."""

    wine_id: str
    merchant_id: str
    old: Decimal
    new: Decimal
    promotion: bool
    event_id: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """One request's prices with the moment of its 202. `nightly`: part of a merchant's refresh of all it sells."""

    merchant_id: str
    prices: tuple[PriceTaken, ...]
    answered_at: datetime
    nightly: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the feeding began. `retries` were requests sent again on purpose, once answered."""

    sent: int = 0
    requests: int = 0
    accepted: int = 0
    unchanged: int = 0
    held: int = 0
    late: int = 0
    events: int = 0
    retries: int = 0
    duplicates: int = 0
    waits: int = 0
    lost_answers: int = 0
    refused: int = 0
    abandoned: int = 0


class Tally:
    """Shared by all merchants of one demo."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals = Totals()
        self._receipts: deque[Receipt] = deque()
        self._accepted: dict[str, tuple[PriceTaken, datetime]] = {}
        self._complaints: deque[str] = deque(maxlen=KEPT_COMPLAINTS)

    def sending(self, prices: int) -> None:
        self._count(sent=prices)

    def took(self, receipt: Receipt) -> None:
        """A request was answered with 202, for the first time."""
        announced = [price for price in receipt.prices if price.event_id]
        with self._lock:
            self._accepted.update(
                {price.event_id: (price, receipt.answered_at) for price in announced if price.event_id}
            )
            self._receipts.append(receipt)
        self._count(
            requests=1,
            accepted=len(receipt.prices),
            events=len(announced),
            unchanged=sum(price.reason == "unchanged" for price in receipt.prices),
            held=sum(price.reason == "held" for price in receipt.prices),
            late=sum(price.reason == "stale" for price in receipt.prices),
        )

    def retried(self, *, duplicate: bool) -> None:
        """A request that had been answered was sent again; `duplicate`: the feed knew it and gave the same answer."""
        self._count(retries=1, duplicates=int(duplicate))

    def waited(self) -> None:
        self._count(waits=1)

    def lost_answer(self) -> None:
        self._count(lost_answers=1)

    def abandoned(self, prices: int) -> None:
        """Told to stop, a merchant left these unsent or without an answer."""
        self._count(abandoned=prices)

    def refused(self, prices: int, complaint: str) -> None:
        with self._lock:
            self._complaints.append(complaint)
        self._count(refused=prices)

    def totals(self) -> Totals:
        return self._totals

    def new_receipts(self) -> list[Receipt]:
        """The receipts since the last call, in the order in which their answers came."""
        with self._lock:
            receipts = list(self._receipts)
            self._receipts.clear()
        return receipts

    def accepted(self) -> dict[str, tuple[PriceTaken, datetime]]:
        """Every event id with its price and the moment of its 202."""
        with self._lock:
            return dict(self._accepted)

    def accepted_at(self, event_id: str) -> datetime | None:
        found = self._accepted.get(event_id)
        return found[1] if found else None

    def complaints(self) -> Sequence[str]:
        with self._lock:
            return list(self._complaints)

    def _count(self, **more: int) -> None:
        with self._lock:
            self._totals = replace(
                self._totals, **{name: getattr(self._totals, name) + count for name, count in more.items()}
            )
