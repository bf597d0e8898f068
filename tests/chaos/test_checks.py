"""Each kind of violation, planted in a history that is otherwise clean, is found by its check and by no other.

A checker that sees nothing is worse than none: so each check is shown the smallest story that breaks its promise.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.chaos.checks import CHECKS, Effect, Facts, Letter, Logged, Mail, Story, check, wrong_with
from tests.chaos.sales import Bought, Movement, SalesFacts, Stock

TEN = Decimal("10.00")
MONEY = [
    Movement("charge", "pur_1", 2 * TEN, "USD"),
    Movement("charge", "pur_2", 2 * TEN, "USD"),
    Movement("refund", "pur_2", 2 * TEN, "USD"),
]
WELL = Letter(1, "chaos-strict", "e-poison", "permanent", "PermanentError", 1, ((1, "PermanentError"),), "applied")
HISTORY: list[dict[str, Any]] = [
    {"what": "publish", "is": "invoke", "id": "p1", "by": "publisher", "event_ids": ["e1", "e2"]},
    {"what": "publish", "is": "ok", "id": "p1", "by": "publisher", "event_ids": ["e1", "e2"]},
    {"what": "publish", "is": "invoke", "id": "p2", "by": "publisher", "event_ids": ["u1", "u2"]},
    {"what": "publish", "is": "unknown", "id": "p2", "by": "publisher"},
    {"what": "prices", "is": "invoke", "id": "m1", "by": "mch_1"},
    {"what": "prices", "is": "unknown", "id": "m1", "by": "mch_1"},
    {"what": "prices", "is": "ok", "id": "m1", "by": "mch_1", "event_ids": ["w1", "w2"], "prices": {"wn_1": "10.00"}},
    {"what": "poison", "is": "invoke", "id": "mendable", "by": "poisoner", "event_ids": ["e-poison"]},
    {"what": "poison", "is": "ok", "id": "mendable", "by": "poisoner", "event_ids": ["e-poison"]},
    {"what": "redrive", "is": "ok", "id": "", "by": "operator", "letters": [1]},
    {"what": "create alert", "is": "ok", "id": "a", "by": "person", "user": 5, "alert": 50},
    {"what": "erase", "is": "invoke", "id": "6", "by": "user-6", "email": "gone@x"},
    {"what": "erase", "is": "ok", "id": "6", "by": "user-6", "email": "gone@x", "at": 100.0},
    *(
        {"what": "buy", "is": "invoke", "id": token, "by": "buyer", "item": 1, "quantity": 2, "price": "10.00"}
        for token in ("t1", "t2", "t3", "t4")
    ),
    {"what": "buy", "is": "unknown", "id": "t1", "by": "buyer"},
    {"what": "buy", "is": "ok", "id": "t1", "by": "buyer", "purchase": 1},
    {"what": "buy", "is": "ok", "id": "t2", "by": "buyer", "purchase": 2},
    {
        "what": "buy",
        "is": "fail",
        "id": "t3",
        "by": "buyer",
        "user": 5,
        "why": "Only 1 bottle is left. Nothing was bought.",
    },
    {"what": "buy", "is": "unknown", "id": "t4", "by": "buyer"},
    {"what": "decide", "is": "ok", "id": "2", "by": "cashier", "event": "compensate"},
]
CHANGES = {"completed": ("charging", "notifying"), "refunded": ("charging", "asking", "calling_off", "refunding")}


def bought(id_: int, state: str) -> Bought:
    came = CHANGES[state]
    changes = tuple(zip(came, (*came[1:], state), strict=True))
    return Bought(id_, f"pur_{id_}", f"t{id_}", 1, 2, TEN, 2 * TEN, "USD", state, changes=changes)


def clean_sales() -> SalesFacts:
    """One bought, one undone after it was charged."""
    return SalesFacts(
        purchases=[bought(1, "completed"), bought(2, "refunded")],
        stock={1: Stock(at_first=10, on_hand=8, reserved=0)},
        ours=MONEY,
        theirs=MONEY,
        mails={("pur_1", "bought"): "sent", ("pur_1", "sold"): "sent", ("pur_2", "refunded"): "sent"},
        told=[("pur_1", "bought"), ("pur_1", "sold"), ("pur_2", "refunded")],
        audit=[("cashier", 2, "compensate")],
    )


def clean() -> tuple[Story, Facts]:
    facts = Facts(
        log={
            "e1": Logged(1, "chaos.counted", "k"),
            "e2": Logged(2, "chaos.counted", "k"),
            "w1": Logged(3, "wine.price_changed", "wn_1"),
            "w2": Logged(4, "wine.price_changed", "wn_1"),
            "e-poison": Logged(5, "chaos.poisoned", "poison-1"),
        },
        types={"chaos-strict": {"chaos.counted", "chaos.poisoned"}, "price-history": {"wine.price_changed"}},
        ledger={"chaos-strict": {"e1", "e2", "e-poison"}, "price-history": {"w1", "w2"}},
        effects={
            "chaos-strict": [Effect("e1", "k", 1), Effect("e2", "k", 2), Effect("e-poison", "poison-1")],
            "price-history": [Effect("w1", "wn_1"), Effect("w2", "wn_1")],
        },
        letters=[WELL],
        mail_keys={"alert-50.w1@x": "sent"},
        mails=[Mail("alert-50.w1@x", "a@x", 50.0), Mail("alert-9.w1@x", "gone@x", 105.0)],
        audit=[("operator", (1,))],
        offers={("mch_1", "wn_1"): "10.00"},
        alerts={50},
        people={5},
        left={"chaos-strict": 0},
        sales=clean_sales(),
    )
    return Story.of(HISTORY), facts


def test_a_clean_run_has_no_violation() -> None:
    assert [name for name, found in check(*clean()).items() if found] == []


Plant = Callable[[Story, Facts], object]


def drop_from_log(story: Story, facts: Facts) -> None:
    """As a server loses it that answers before its disk has it: with all that followed from it."""
    facts.log = {event_id: logged for event_id, logged in facts.log.items() if event_id != "e2"}
    facts.ledger = {**facts.ledger, "chaos-strict": {"e1", "e-poison"}}
    facts.effects = {**facts.effects, "chaos-strict": [Effect("e1", "k", 1), Effect("e-poison", "poison-1")]}


def keep_half(story: Story, facts: Facts) -> None:
    facts.log = {**facts.log, "u1": Logged(9, "nobody.asked", "k")}


def lose_in_custody(story: Story, facts: Facts) -> None:
    facts.ledger = {**facts.ledger, "price-history": {"w1"}}
    facts.effects = {**facts.effects, "price-history": [Effect("w1", "wn_1")]}


def effect_without_ledger(story: Story, facts: Facts) -> None:
    facts.effects = {**facts.effects, "price-history": [Effect("w1", "wn_1")]}


def twice(story: Story, facts: Facts) -> None:
    facts.effects = {**facts.effects, "price-history": [*facts.effects["price-history"], Effect("w2", "wn_1")]}


def swap(story: Story, facts: Facts) -> None:
    facts.effects = {**facts.effects, "price-history": facts.effects["price-history"][::-1]}


def number_backwards(story: Story, facts: Facts) -> None:
    strict = [replace(effect, seq=3 - effect.seq) if effect.seq else effect for effect in facts.effects["chaos-strict"]]
    facts.effects = {**facts.effects, "chaos-strict": strict}


def mail_under_two_keys(story: Story, facts: Facts) -> None:
    facts.mails = [*facts.mails, Mail("alert-50.w1.again@x", "a@x", 51.0)]


def mail_twice(story: Story, facts: Facts) -> None:
    facts.mails = [*facts.mails, facts.mails[0]]


def mail_never_taken(story: Story, facts: Facts) -> None:
    facts.mail_keys = {**facts.mail_keys, "alert-50.w2@x": "sent"}


def mail_forgotten(story: Story, facts: Facts) -> None:
    facts.mail_keys = {**facts.mail_keys, "alert-50.w2@x": "queued"}


def mail_long_after(story: Story, facts: Facts) -> None:
    facts.mails = [facts.mails[0], replace(facts.mails[1], at=130.0)]


def refuse(story: Story, facts: Facts) -> None:
    story.refused.append("mch_1 m2: 500 oops")


def other_price(story: Story, facts: Facts) -> None:
    facts.offers = {("mch_1", "wn_1"): "11.00"}


def lose_alert(story: Story, facts: Facts) -> None:
    facts.alerts = set()


def bury_innocent(story: Story, facts: Facts) -> None:
    facts.letters = [WELL, Letter(2, "price-history", "w1", "exhausted", "OperationalError", 5)]


def count_wrongly(story: Story, facts: Facts) -> None:
    facts.letters = [replace(WELL, receive_count=2)]


def redrive_to_nowhere(story: Story, facts: Facts) -> None:
    facts.letters = [replace(WELL, outcome="sent")]


def redrive_twice(story: Story, facts: Facts) -> None:
    facts.audit = [*facts.audit, ("another", (1,))]


def redrive_unseen(story: Story, facts: Facts) -> None:
    facts.audit = []


def leave_waiting(story: Story, facts: Facts) -> None:
    facts.left = {"chaos-strict": 1}


def turn(facts: Facts, number: int, **into: object) -> None:
    """One of the purchases becomes another."""
    some = list(facts.sales.purchases)
    some[number] = replace(some[number], **into)  # type: ignore[arg-type]
    facts.sales.purchases = some


def lose_purchase(story: Story, facts: Facts) -> None:
    """With all that followed from it, as a commit that was not on disk."""
    facts.sales = replace(clean_sales(), purchases=[bought(2, "refunded")], ours=MONEY[1:], theirs=MONEY[1:], mails={})
    facts.sales.mails = {("pur_2", "refunded"): "sent"}
    facts.sales.told = [("pur_2", "refunded")]
    facts.sales.stock = {1: Stock(10, 10, 0)}


def sell_dearer(story: Story, facts: Facts) -> None:
    turn(facts, 0, price=TEN + 1, amount=2 * TEN + 2)
    facts.sales.ours = facts.sales.theirs = [replace(MONEY[0], amount=2 * TEN + 2), *MONEY[1:]]


def buy_twice_by_one_form(story: Story, facts: Facts) -> None:
    facts.sales.purchases = [*facts.sales.purchases, replace(bought(3, "refunded"), token="t1")]
    facts.sales.mails = {**facts.sales.mails, ("pur_3", "refunded"): "sent"}


def buy_though_refused(story: Story, facts: Facts) -> None:
    facts.sales.purchases = [*facts.sales.purchases, bought(3, "refunded")]
    facts.sales.mails = {**facts.sales.mails, ("pur_3", "refunded"): "sent"}


def refuse_a_buyer(story: Story, facts: Facts) -> None:
    story.sales.refusals.append((5, "500"))


def oversell(story: Story, facts: Facts) -> None:
    facts.sales.stock = {1: Stock(at_first=1, on_hand=0, reserved=0)}


def keep_reserved(story: Story, facts: Facts) -> None:
    facts.sales.stock = {1: Stock(at_first=10, on_hand=8, reserved=2)}


def charge_twice(story: Story, facts: Facts) -> None:
    """And give one back: the sums are right, and the buyer has two lines on the statement."""
    facts.sales.theirs = [*MONEY, MONEY[0], replace(MONEY[2], reference="pur_1")]


def take_a_cent_more(story: Story, facts: Facts) -> None:
    facts.sales.theirs = [replace(MONEY[0], amount=2 * TEN + Decimal("0.01")), *MONEY[1:]]


def charge_for_nothing(story: Story, facts: Facts) -> None:
    """Both ledgers agree, and a refund that came back was forgotten."""
    facts.sales.ours = facts.sales.theirs = [*MONEY, Movement("returned", "pur_2", 2 * TEN, "USD")]


def charge_a_stranger(story: Story, facts: Facts) -> None:
    facts.sales.theirs = [*MONEY, replace(MONEY[0], reference="pur_9")]


def leave_a_saga(story: Story, facts: Facts) -> None:
    turn(facts, 0, state="notifying", changes=(("charging", "notifying"),))


def jump(story: Story, facts: Facts) -> None:
    turn(facts, 1, changes=(("charging", "asking"), ("calling_off", "refunding"), ("refunding", "refunded")))


def tell_of_nothing(story: Story, facts: Facts) -> None:
    facts.sales.told = [*facts.sales.told, ("pur_2", "bought")]


def tell_nobody(story: Story, facts: Facts) -> None:
    facts.sales.mails = {("pur_1", "bought"): "sent", ("pur_2", "refunded"): "sent"}


def decide_unseen(story: Story, facts: Facts) -> None:
    facts.sales.audit = []


def decide_by_nobody(story: Story, facts: Facts) -> None:
    facts.sales.audit = [*facts.sales.audit, ("cashier", 2, "compensate")]


@pytest.mark.parametrize(
    ("plant", "found_by"),
    [
        (drop_from_log, "lost, though acknowledged"),
        (keep_half, "half of a transaction"),
        (lose_in_custody, "neither applied nor buried"),
        (leave_waiting, "still waiting at the end"),
        (effect_without_ledger, "effect without ledger, or ledger without effect"),
        (twice, "effects that happened twice"),
        (swap, "inversions within a wine or key"),
        (number_backwards, "published out of order"),
        (other_price, "offers that are not what was acknowledged"),
        (refuse, "good requests refused"),
        (mail_twice, "mails twice under one key, lost or of nobody"),
        (mail_under_two_keys, "mails twice under one key, lost or of nobody"),
        (mail_never_taken, "mails twice under one key, lost or of nobody"),
        (mail_forgotten, "mails twice under one key, lost or of nobody"),
        (mail_long_after, "mails to people who were forgotten"),
        (lose_alert, "alerts lost"),
        (count_wrongly, "poison with a wrong count or cause"),
        (bury_innocent, "innocent messages buried"),
        (redrive_to_nowhere, "redrives not applied once, or not on the audit log"),
        (redrive_twice, "redrives not applied once, or not on the audit log"),
        (redrive_unseen, "redrives not applied once, or not on the audit log"),
        (lose_purchase, "purchases lost or other than acknowledged"),
        (sell_dearer, "purchases lost or other than acknowledged"),
        (buy_twice_by_one_form, "purchases lost or other than acknowledged"),
        (buy_though_refused, "bought, though told that nothing was"),
        (refuse_a_buyer, "good purchases refused"),
        (oversell, "bottles sold twice, or lost"),
        (keep_reserved, "bottles sold twice, or lost"),
        (charge_twice, "money that does not balance, to the cent"),
        (take_a_cent_more, "money that does not balance, to the cent"),
        (charge_for_nothing, "money that does not balance, to the cent"),
        (charge_a_stranger, "money that does not balance, to the cent"),
        (leave_a_saga, "purchases left on their way"),
        (jump, "purchases left on their way"),
        (tell_of_nothing, "told of what did not happen, or not told of what did"),
        (tell_nobody, "told of what did not happen, or not told of what did"),
        (decide_unseen, "decisions about purchases not on the audit log, or of nobody"),
        (decide_by_nobody, "decisions about purchases not on the audit log, or of nobody"),
    ],
)
def test_each_violation_is_found_by_its_check_and_by_no_other(plant: Plant, found_by: str) -> None:
    story, facts = deepcopy(clean())
    plant(story, facts)
    assert [name for name, found in check(story, facts).items() if found] == [found_by]


def test_there_is_a_planted_violation_for_every_check() -> None:
    (marker,) = test_each_violation_is_found_by_its_check_and_by_no_other.pytestmark  # type: ignore[attr-defined]
    assert {found_by for _, found_by in marker.args[1]} == set(CHECKS)


def test_a_transaction_that_nobody_answered_may_be_there_as_a_whole() -> None:
    story, facts = clean()
    facts.log = {**facts.log, "u1": Logged(9, "nobody.asked", "k"), "u2": Logged(10, "nobody.asked", "k")}
    assert not any(check(story, facts).values())


def test_a_merchant_who_waits_for_an_answer_is_held_to_no_price() -> None:
    facts = clean()[1]
    facts.offers = {("mch_1", "wn_1"): "11.00"}
    story = Story.of([*HISTORY, {"what": "prices", "is": "invoke", "id": "m2", "by": "mch_1"}])
    assert not any(check(story, facts).values())


def test_somebody_who_is_being_erased_may_have_no_card_any_more_but_gets_no_500() -> None:
    story, facts = clean()
    story.sales.refusals.append((6, "Add a card first."))
    assert not any(check(story, facts).values())
    story.sales.refusals.append((6, "500"))
    assert check(story, facts)["good purchases refused"]


def test_a_purchase_that_nobody_answered_may_be_there_or_not() -> None:
    story, facts = clean()
    facts.sales.purchases = [*facts.sales.purchases, bought(4, "refunded")]
    facts.sales.mails = {**facts.sales.mails, ("pur_4", "refunded"): "sent"}
    assert not any(check(story, facts).values())


def test_what_waits_for_a_person_is_left_to_them_and_need_not_balance_while_nobody_knows() -> None:
    story, facts = clean()
    turn(facts, 1, state="charge_unclear", changes=(("charging", "lapsed"), ("lapsed", "charge_unclear")))
    facts.sales.ours = MONEY[:1]
    facts.sales.told = facts.sales.told[:2]
    assert not any(check(story, facts).values())


LEASE, TRANSIENT, DATABASE = "LeaseExpired", "TransientError", "OperationalError"


def letter(cause: str, error: str, receives: int, *classes: str) -> Letter:
    """With these failures, receive by receive; what fell silent has one more, about itself."""
    told = [(number, name) for number, name in enumerate(classes, start=1)]
    own = [(receives, error)] if error == "WorkerCrashError" else []
    return Letter(1, "chaos-strict", "e", cause, error, receives, (*told, *own))


CRASH = "WorkerCrashError"


@pytest.mark.parametrize(
    ("kind", "buried", "is_right"),
    [
        ("permanent", letter("permanent", "PermanentError", 1, "PermanentError"), True),
        ("permanent", letter("permanent", "PermanentError", 2, LEASE, "PermanentError"), True),
        ("permanent", letter("permanent", "PermanentError", 2, "PermanentError", "PermanentError"), False),
        ("permanent", letter("exhausted", "PermanentError", 1, "PermanentError"), False),
        ("transient", letter("exhausted", TRANSIENT, 5, *[TRANSIENT] * 5), True),
        ("transient", letter("exhausted", TRANSIENT, 5, TRANSIENT, LEASE, DATABASE, TRANSIENT, TRANSIENT), True),
        ("transient", letter("exhausted", TRANSIENT, 4, *[TRANSIENT] * 4), False),
        ("transient", letter("exhausted", TRANSIENT, 6, *[TRANSIENT] * 6), False),
        ("transient", letter("exhausted", TRANSIENT, 5, *[TRANSIENT] * 4), False),
        ("transient", letter("worker_crash", CRASH, 5, *[TRANSIENT] * 4, LEASE), True),
        ("transient", letter("worker_crash", CRASH, 5, *[TRANSIENT] * 5), False),
        ("transient", letter("exhausted", TRANSIENT, 5, *["KeyError"] * 4, TRANSIENT), False),
        ("exit", letter("worker_crash", CRASH, 5, *[LEASE] * 5), True),
        ("exit", letter("worker_crash", CRASH, 4, *[LEASE] * 4), False),
        ("exit", letter("exhausted", TRANSIENT, 5, *[TRANSIENT] * 5), False),
        ("memory", letter("worker_crash", "MemoryError", 5, *["MemoryError"] * 5), True),
        ("memory", letter("exhausted", "MemoryError", 5, *["MemoryError"] * 5), False),
    ],
)
def test_a_letter_is_held_to_what_its_poison_does(kind: str, buried: Letter, is_right: bool) -> None:
    assert (wrong_with(kind, buried) == "") is is_right
