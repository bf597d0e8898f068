"""What the pages of purchases read. Each says how many queries it makes; none changes anything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db.models import F

from winecellar.purchases import saga, words
from winecellar.purchases.models import Card, Entry, Money, Purchase, PurchaseMail, StockItem
from winecellar.purchases.rules import RESERVES, STEP, Event, State

PAGE_SIZE = 20


def stock_of(wine_id: str) -> list[StockItem]:
    """What can be bought of a wine, the cheapest of each currency first: 1 query. Nothing where nothing is sold."""
    if settings.PAYMENTS is None:
        return []
    there = StockItem.objects.filter(wine_id=wine_id, wine__retired_at=None, on_hand__gt=F("reserved"))
    return list(there.select_related("merchant").order_by("currency", "price", "pk"))


def card_of(user_id: int) -> Card | None:
    """The card that purchases are charged to: 1 query."""
    return Card.objects.filter(user_id=user_id).exclude(method_id="").first()


@dataclass(frozen=True)
class Line:
    """One line of a purchase's log, for its buyer."""

    at: datetime
    says: str
    state: str


@dataclass(frozen=True)
class Standing:
    """One purchase, in words. `steps`: each step of the saga, and “done”, “now”, “undone”, or ""."""

    purchase: Purchase
    steps: list[tuple[str, str]]
    lines: list[Line]
    money: list[Money]
    mails: list[PurchaseMail]

    @property
    def state(self) -> State:
        return State(self.purchase.state)

    @property
    def label(self) -> str:
        return words.STATES[self.state]

    @property
    def chip(self) -> str:
        return words.CHIPS[self.state]

    @property
    def says(self) -> str:
        return words.SAYS[self.state]

    @property
    def is_reserved(self) -> bool:
        return self.state in RESERVES

    @property
    def moves(self) -> bool:
        """Whether looking again soon may show something else."""
        return self.state in STEP

    @property
    def charged(self) -> Decimal:
        return sum((row.amount for row in self.money if row.kind == Money.Kind.CHARGE), Decimal(0))

    @property
    def given_back(self) -> Decimal:
        back = sum((row.amount for row in self.money if row.kind == Money.Kind.REFUND), Decimal(0))
        return back - sum((row.amount for row in self.money if row.kind == Money.Kind.RETURNED), Decimal(0))

    @property
    def residue(self) -> str:
        """What stays on the buyer's statement; nothing where no money went back, or will."""
        return saga.CHARGE.residue if self.given_back or self.state is State.REFUNDING else ""

    @property
    def is_bought(self) -> bool:
        return self.state in (State.NOTIFYING, State.COMPLETED)


def standing(*, user_id: int, pk: int) -> Standing:
    """One purchase of this person: 4 queries. Raises Purchase.DoesNotExist, also for another's."""
    purchase = Purchase.objects.select_related("item").get(pk=pk, buyer_id=user_id)
    entries = list(purchase.entries.all())
    return Standing(
        purchase,
        _steps(purchase),
        [line for entry in entries if (line := _line(entry))],
        list(purchase.money.all()),
        list(purchase.mails.exclude(kind=PurchaseMail.Kind.SOLD)),
    )


def _steps(purchase: Purchase) -> list[tuple[str, str]]:
    """Reserve, charge, notify, each with how far it is."""
    state = State(purchase.state)
    if state in (State.RELEASED, State.REFUNDED, State.RESOLVED):
        charge = "undone" if state is State.REFUNDED else ""
        return [("reserve", "undone"), ("charge", charge), ("notify", "")]
    now = STEP.get(state)
    names = [step.name for step in saga.SAGA]
    place = names.index(now.name) if now else len(names)
    return [(name, "done" if n < place else "now" if n == place else "") for n, name in enumerate(names)]


def _line(entry: Entry) -> Line | None:
    if entry.kind == Entry.Kind.BEGUN:
        return Line(entry.at, "The bottles were reserved", entry.state)
    if entry.kind == Entry.Kind.CHANGED or entry.event == Event.NO_ANSWER:
        return Line(entry.at, words.EVENTS[Event(entry.event)], entry.state)
    return None


@dataclass(frozen=True)
class History:
    purchases: list[tuple[Purchase, str, str]]  # each with its state in words, and its chip
    older: int | None


def history(*, user_id: int, before: int | None) -> History:
    """Somebody's purchases, the newest first: 1 query."""
    rows = Purchase.objects.filter(buyer_id=user_id)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: PAGE_SIZE + 1])
    shown = [(row, words.STATES[State(row.state)], words.CHIPS[State(row.state)]) for row in found[:PAGE_SIZE]]
    return History(shown, shown[-1][0].pk if len(found) > PAGE_SIZE else None)
