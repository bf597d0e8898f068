"""Each kind of violation, planted in a history that is otherwise clean, is found by its check and by no other.

A checker that sees nothing is worse than none: so each check is shown the smallest story that breaks its promise.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.checks import CHECKS, Effect, Facts, Letter, Logged, Mail, Story, check, wrong_with

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
]


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
