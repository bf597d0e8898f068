"""The checks of what was bought: the buyers' history, our ledger, the provider's, the stock and the mails. Pure.

For checks.py, which has them among the others. Each returns a sentence for each violation.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

SOLD = {"notifying", "completed"}
RESERVES = {"charging", "asking"}
FOR_A_PERSON = {"charge_unclear", "refund_unclear"}
WITHOUT_MONEY = {"released", "refunded"}
ENDED = {"completed", "released", "refunded", "resolved"}
# Why somebody may be told that nothing was bought. Whatever else is said, a good request was refused.
GOOD_REASONS = re.compile(r"All bottles are sold or reserved now|Only \d+ bottles? (is|are) left|\d+ of your purchases")
ERASED_REASONS = re.compile(r"Add a card first|Confirm your address first")
# In which states of its purchase a mail of a kind tells of what is so; a refund may come back from the bank later.
TRUE_IN = {"bought": SOLD, "sold": SOLD, "refunded": {"refunded", "refund_unclear", "refunding", "resolved"}}
# What a kind of movement is to the merchant's side.
SIGN = {"charge": 1, "refund": -1, "returned": 1}


@dataclass(frozen=True)
class Order:
    """What a buyer confirmed. `purchase`: what they were told it became."""

    token: str
    item: int
    quantity: int
    price: Decimal
    purchase: int | None = None


@dataclass(frozen=True)
class Bought:
    """A purchase as it is in the end. `changes`: (came from, state) of each change in its log, in order."""

    id: int
    reference: str
    token: str
    item: int
    quantity: int
    price: Decimal
    amount: Decimal
    currency: str
    state: str
    has_buyer: bool = True
    changes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Movement:
    """Of money: charge, refund, or a refund that came back."""

    kind: str
    reference: str
    amount: Decimal
    currency: str


@dataclass(frozen=True)
class Stock:
    """Bottles of one kind: how many there were, how many are not sold, and how many of these are reserved."""

    at_first: int
    on_hand: int
    reserved: int


Decided = tuple[str, int, str]  # by whom, about which purchase, what


@dataclass
class SalesStory:
    """What buyers and operators asked and were told, by the form's token."""

    acknowledged: dict[str, Order] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)  # told that nothing was bought, and never without an answer before
    refusals: list[tuple[int, str]] = field(default_factory=list)  # who, why
    perhaps_erased: set[int] = field(default_factory=set)
    decided: list[Decided] = field(default_factory=list)
    perhaps_decided: list[Decided] = field(default_factory=list)
    _asked: dict[str, Order] = field(default_factory=dict)
    _unsure: set[str] = field(default_factory=set)

    def take(self, line: Mapping[str, Any]) -> None:
        """One line of the history."""
        how, id_ = line["is"], line["id"]
        match line["what"], how:
            case "erase", _:
                self.perhaps_erased.add(int(id_))
            case "buy", "invoke":
                self._asked[id_] = Order(id_, line["item"], line["quantity"], Decimal(line["price"]))
            case "buy", "unknown":
                self._unsure.add(id_)
            case "buy", "ok":
                asked = self._asked[id_]
                self.acknowledged[id_] = Order(id_, asked.item, asked.quantity, asked.price, line["purchase"])
            case "buy", "fail":
                self.refusals.append((line["user"], line["why"]))
                if id_ not in self._unsure:
                    self.refused.add(id_)
            case "look at stock", "fail":
                self.refusals.append((line["user"], line["why"]))
            case "decide", "ok":
                self.decided.append((line["by"], int(id_), line["event"]))
            case "decide", "unknown":
                self.perhaps_decided.append((line["by"], int(id_), line["event"]))


@dataclass
class SalesFacts:
    """What is there at the end. `told`: (reference, kind) of each mail that the mail provider took; `mails`: what our
    books say of each."""

    purchases: Sequence[Bought] = ()
    stock: Mapping[int, Stock] = field(default_factory=dict)
    ours: Sequence[Movement] = ()
    theirs: Sequence[Movement] = ()
    mails: Mapping[tuple[str, str], str] = field(default_factory=dict)
    told: Sequence[tuple[str, str]] = ()
    audit: Sequence[Decided] = ()


def lost_purchases(story: SalesStory, facts: SalesFacts) -> list[str]:
    """I1, I11: who was told that they bought has bought that, at the price that they confirmed, and once."""
    by_id = {each.id: each for each in facts.purchases}
    found = []
    for token, order in story.acknowledged.items():
        there = by_id.get(order.purchase or 0)
        if there is None:
            found.append(f"purchase {order.purchase} was acknowledged, and is not there")
        elif (there.token, there.item, there.quantity, there.price, there.amount) != (
            *(token, order.item, order.quantity, order.price),
            order.quantity * order.price,
        ):
            found.append(f"purchase {there.id} is {there}, and {order} was confirmed")
    forms = Counter(each.token for each in facts.purchases)
    found += [f"the form {token} became {count} purchases" for token, count in forms.items() if count > 1]
    return found


def unwanted_purchases(story: SalesStory, facts: SalesFacts) -> list[str]:
    """I11: who was told that nothing was bought has bought nothing."""
    return [
        f"{each.reference} is {each.state}, and its buyer was told that nothing was bought"
        for each in facts.purchases
        if each.token in story.refused
    ]


def wrongly_refused(story: SalesStory, facts: SalesFacts) -> list[str]:
    """I12: nobody is refused but for what can be: no bottles, too many purchases that are not paid; in the moment in
    which somebody is erased, that they have no card or no address. Never a 500."""
    return [
        f"person {user} was told: {why}"
        for user, why in story.refusals
        if not (GOOD_REASONS.match(why) or (user in story.perhaps_erased and ERASED_REASONS.match(why)))
    ]


def wrong_stock(story: SalesStory, facts: SalesFacts) -> list[str]:
    """No bottle is sold twice, and none is lost: what is gone is what was sold, what is reserved is waited for."""
    sold, held = Counter[int](), Counter[int]()
    for each in facts.purchases:
        sold[each.item] += each.quantity if each.state in SOLD else 0
        held[each.item] += each.quantity if each.state in RESERVES else 0
    found = []
    for item, stock in facts.stock.items():
        if stock.on_hand != stock.at_first - sold[item] or stock.on_hand < 0:
            found.append(f"item {item}: of {stock.at_first} bottles {sold[item]} are sold and {stock.on_hand} left")
        if stock.reserved != held[item]:
            found.append(f"item {item}: {stock.reserved} bottles are reserved, and {held[item]} are waited for")
    return found


def unbalanced_money(story: SalesStory, facts: SalesFacts) -> list[str]:
    """I10: the provider's ledger and ours say the same of each purchase, to the cent, and it is what its end says:
    money taken = bottles delivered + refunds."""
    theirs, ours = _balances(facts.theirs), _balances(facts.ours)
    charged = Counter(each.reference for each in facts.theirs if each.kind == "charge")
    found = [f"{reference} was charged {count} times" for reference, count in charged.items() if count > 1]
    known = {each.reference: each for each in facts.purchases}
    found += [f"the provider moved money for {reference}, which is no purchase" for reference in theirs.keys() - known]
    for reference, each in known.items():
        taken, entered = theirs[reference], ours[reference]
        if each.state != "charge_unclear" and taken != entered:
            found.append(f"{reference}, {each.state}: the provider has {_said(taken)}, our books {_said(entered)}")
        expected = {(each.currency, each.amount)} if each.state in SOLD else set()
        if each.state in SOLD | WITHOUT_MONEY and set(taken) != expected:
            found.append(f"{reference}, {each.state}, cost {each.amount}: the provider has {_said(taken)}")
    return found


def _balances(movements: Sequence[Movement]) -> dict[str, frozenset[tuple[str, Decimal]]]:
    """By purchase what was taken and not given back, in each currency; nothing where it is nought."""
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for each in movements:
        sums[each.reference, each.currency] += SIGN[each.kind] * each.amount
    left: dict[str, frozenset[tuple[str, Decimal]]] = defaultdict(frozenset)
    for (reference, currency), amount in sums.items():
        left[reference] |= {(currency, amount)} if amount else set()
    return left


def _said(balance: frozenset[tuple[str, Decimal]]) -> str:
    return ", ".join(f"{currency} {amount}" for currency, amount in sorted(balance)) or "nothing"


def unended_sagas(story: SalesStory, facts: SalesFacts) -> list[str]:
    """I10: each is completed, compensated or in front of a person, and its log leads there step by step."""
    found = [f"{each.reference} is left {each.state}" for each in facts.purchases if _is_left(each)]
    for each in facts.purchases:
        state = "charging"
        for came_from, became in each.changes:
            if came_from != state:
                found.append(f"{each.reference}: its log says {state}, and then that it was {came_from}")
            state = became
        if state != each.state:
            found.append(f"{each.reference} is {each.state}, and its log ends with {state}")
    return found


def _is_left(each: Bought) -> bool:
    return each.state not in ENDED | FOR_A_PERSON


def false_tidings(story: SalesStory, facts: SalesFacts) -> list[str]:
    """Nobody is told of a purchase that did not happen; and who bought, or has their money back, is told."""
    state = {each.reference: each.state for each in facts.purchases}
    found = [
        f"a mail “{kind}” was taken for {reference}, which is {state.get(reference, 'no purchase')}"
        for reference, kind in facts.told
        if state.get(reference) not in TRUE_IN[kind]
    ]
    for each in facts.purchases:
        due = {"completed": ("bought", "sold"), "refunded": ("refunded",)}.get(each.state, ())
        for kind in due:
            became = facts.mails.get((each.reference, kind), "never asked for")
            if became != "sent" and (each.has_buyer or kind == "sold"):
                found.append(f"{each.reference} is {each.state}, and its mail “{kind}” is {became}")
    return found


def unlogged_decisions(story: SalesStory, facts: SalesFacts) -> list[str]:
    """I13: what an operator was told is decided stands on the audit log, once; nothing else does."""
    there = Counter(facts.audit)
    found = [f"{each} was acknowledged, and is not on the audit log" for each in Counter(story.decided) - there]
    strange = there - Counter(story.decided) - Counter(story.perhaps_decided)
    return found + [f"{each} stands on the audit log, and nobody did it" for each in strange]


def in_numbers(facts: SalesFacts) -> dict[str, int]:
    """For the report."""
    numbers = {f"purchases {state}": count for state, count in Counter(each.state for each in facts.purchases).items()}
    for kind in SIGN:
        numbers[f"money {kind}"] = sum(each.kind == kind for each in facts.theirs)
    lapsed = sum(any(became == "lapsed" for _, became in each.changes) for each in facts.purchases)
    return {"purchases": len(facts.purchases), "reservations run out": lapsed, **numbers}
