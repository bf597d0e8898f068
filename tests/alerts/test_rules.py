"""The alert state machine as tables: every kind in every state, then what hushes it and what its reasons say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from alerts.rules import (
    SUPERSEDED,
    Kind,
    Outcome,
    Sight,
    State,
    Terms,
    Verdict,
    Watch,
    judge_first_check,
    judge_offer,
    judge_withdrawal,
)

NOW = datetime(2026, 3, 14, 9, 12, tzinfo=UTC)
TERMS = Terms(further=Decimal("0.05"), cooldown=timedelta(hours=6))
P, A, F = State.PENDING, State.ARMED, State.FIRED
MAILED, NOT_MAILED, ARMED = Outcome.MAILED, Outcome.NOT_MAILED, Outcome.ARMED
# The target is 160, of which 154 was told; 146.30 is 5 per cent lower than that.
TOLD = {"told_at": Decimal(154), "told_when": NOW - timedelta(days=1)}


def watch(kind: str, state: State, **fields: Any) -> Watch:
    target = Decimal(160) if kind in {"threshold", "percent"} else None
    told = TOLD if state is F else {}
    return Watch(**{"kind": Kind(kind), "state": state, "currency": "USD", "target": target, **told, **fields})


def sight(price: str | None, **fields: Any) -> Sight:
    amount = None if price is None else Decimal(price)
    return Sight(**{"price": amount, "current": True, "best_after": amount, **fields})


def judge(one: Watch, seen: Sight) -> Verdict | None:
    return judge_offer(one, seen, now=NOW, terms=TERMS)


def outcome(verdict: Verdict | None) -> tuple[State, Outcome] | None:
    return verdict and (verdict.state, verdict.outcome)


@pytest.mark.parametrize(
    ("kind", "state", "seen", "expected"),
    [
        # A price to wait for, and a percentage, which has come to one.
        *(
            (kind, state, seen, expected)
            for kind in ("threshold", "percent")
            for state, seen, expected in [
                (P, sight("154"), None),  # its own first check is queued behind this event
                (A, sight("154"), (F, MAILED)),
                (A, sight("160"), (F, MAILED)),
                (A, sight("160.01"), None),
                (A, sight("154", current=False), (A, NOT_MAILED)),
                (A, sight("154", told_of_it=True), (F, NOT_MAILED)),
                (F, sight("154"), (F, NOT_MAILED)),
                (F, sight("146.31"), (F, NOT_MAILED)),
                (F, sight("146.30"), (F, MAILED)),
                (F, sight("146.30", current=False), (F, NOT_MAILED)),
                (F, sight("161"), (A, ARMED)),
                (F, sight("161", best_after=None), (A, ARMED)),
                (F, sight("161", best_after=Decimal(154)), None),  # another still asks no more than the target
                (F, sight("161", current=False), (A, ARMED)),
            ]
        ),
        ("low", P, sight("154", is_low=True), None),
        ("low", A, sight("154", is_low=True), (F, MAILED)),
        ("low", A, sight("154"), None),
        ("low", A, sight("154", is_low=True, current=False), (A, NOT_MAILED)),
        ("low", F, sight("153", is_low=True), (F, NOT_MAILED)),
        ("low", F, sight("146.30", is_low=True), (F, MAILED)),
        ("low", F, sight("154.01"), (A, ARMED)),  # above what was told
        ("low", F, sight("170", best_after=Decimal(154)), None),
        ("back", P, sight("154"), None),
        ("back", A, sight("1000"), (F, MAILED)),
        ("back", A, sight("154", current=False), (A, NOT_MAILED)),
        ("back", A, sight("154", told_of_it=True), (F, MAILED)),  # that it is back is the news
        ("back", F, sight("154"), None),
        ("back", F, sight("100"), None),
    ],
)
def test_what_an_offer_does_to_an_alert(
    kind: str, state: State, seen: Sight, expected: tuple[State, Outcome] | None
) -> None:
    assert outcome(judge(watch(kind, state), seen)) == expected


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("state", [P, A, F])
def test_what_cannot_be_said_in_the_alerts_money_decides_nothing(kind: Kind, state: State) -> None:
    assert judge(watch(kind, state), sight(None, is_low=True)) is None


@pytest.mark.parametrize(
    ("kind", "state", "best_after", "expected"),
    [
        ("threshold", F, None, (A, ARMED)),
        ("threshold", F, Decimal(161), (A, ARMED)),
        ("threshold", F, Decimal(160), None),
        ("threshold", A, None, None),
        ("threshold", P, None, None),
        ("low", F, Decimal("154.01"), (A, ARMED)),
        ("low", F, Decimal(154), None),
        ("back", F, Decimal(1000), None),
        ("back", F, None, (A, ARMED)),
    ],
)
def test_what_the_end_of_an_offer_does(
    kind: str, state: State, best_after: Decimal | None, expected: tuple[State, Outcome] | None
) -> None:
    assert outcome(judge_withdrawal(watch(kind, state), best_after=best_after)) == expected


@pytest.mark.parametrize(
    ("kind", "seen", "expected"),
    [
        ("threshold", None, (A, ARMED)),
        ("threshold", sight(None), (A, ARMED)),
        ("threshold", sight("161"), (A, ARMED)),
        ("threshold", sight("161", current=False), (A, ARMED)),
        ("threshold", sight("160"), (F, MAILED)),
        ("threshold", sight("154", current=False), (A, NOT_MAILED)),
        ("low", sight("154"), (A, ARMED)),
        ("low", sight("154", is_low=True), (F, MAILED)),
        ("back", None, (A, ARMED)),
        ("back", sight("154"), (F, ARMED)),
    ],
)
def test_what_the_first_check_does(kind: str, seen: Sight | None, expected: tuple[State, Outcome]) -> None:
    assert outcome(judge_first_check(watch(kind, P), seen, now=NOW, terms=TERMS)) == expected


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("state", [A, F])
def test_a_first_check_is_made_once(kind: Kind, state: State) -> None:
    seen = sight("100", is_low=True)
    assert judge_first_check(watch(kind, state), seen, now=NOW, terms=TERMS) is None


# --- What hushes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ago", "price", "expected"),
    [
        (timedelta(hours=6), "154", MAILED),  # the cooldown is over
        (timedelta(hours=5), "154", NOT_MAILED),
        (timedelta(hours=5), "146.31", NOT_MAILED),
        (timedelta(hours=5), "146.30", MAILED),  # a further step is news at any time
    ],
)
@pytest.mark.parametrize("kind", ["threshold", "low"])
def test_within_the_cooldown_the_same_news_is_none(kind: str, ago: timedelta, price: str, expected: Outcome) -> None:
    one = watch(kind, A, told_at=Decimal(154), told_when=NOW - ago)
    seen = sight(price, is_low=True)
    assert outcome(judge(one, seen)) == (F, expected)
    again = judge_first_check(replace(one, state=P), seen, now=NOW, terms=TERMS)
    assert outcome(again) == (F, expected)


def test_what_comes_and_goes_is_told_once_within_the_cooldown_however_cheap() -> None:
    one = watch("back", A, told_at=Decimal(154), told_when=NOW - timedelta(hours=1))
    assert outcome(judge(one, sight("100"))) == (F, NOT_MAILED)


@pytest.mark.parametrize("kind", list(Kind))
def test_a_snoozed_alert_does_not_speak_and_is_not_taken_for_told(kind: Kind) -> None:
    one = watch(kind, A, snoozed_until=NOW + timedelta(seconds=1))
    seen = sight("146", is_low=True)
    assert judge(one, seen) == Verdict(A, NOT_MAILED, "snoozed until 14 Mar 09:12 UTC")
    assert outcome(judge(replace(one, snoozed_until=NOW), seen)) == (F, MAILED)


def test_a_snoozed_alert_still_arms_when_the_price_has_risen() -> None:
    assert outcome(judge(watch("threshold", F, snoozed_until=NOW + timedelta(days=1)), sight("161"))) == (A, ARMED)


def test_until_it_rises_means_no_further_fall_either() -> None:
    one = watch("threshold", F, snoozed_until_rise=True)
    assert judge(one, sight("100")) == Verdict(F, NOT_MAILED, "snoozed until it rises")
    assert outcome(judge(one, sight("161"))) == (A, ARMED)


@pytest.mark.parametrize(
    ("state", "previous", "price", "expected"),
    [
        (A, "161", "159", NOT_MAILED),  # it asks no less in its own money, but crossed the target
        (A, "158", "159", MAILED),  # it had been there before: superseded, say
        (F, "150", "146", NOT_MAILED),
        (F, "146", "146", MAILED),
    ],
)
def test_the_exchange_rate_alone_never_mails(state: State, previous: str, price: str, expected: Outcome) -> None:
    verdict = judge(watch("threshold", state), sight(price, previous=Decimal(previous), no_cheaper=True))
    assert verdict is not None
    assert (verdict.state, verdict.outcome) == (state if expected is NOT_MAILED else F, expected)


def test_a_low_that_only_the_exchange_rate_made_is_none() -> None:
    seen = sight("149", previous=Decimal(150), no_cheaper=True, is_low=True)
    assert outcome(judge(watch("low", A), seen)) == (A, NOT_MAILED)


# --- What is said ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "seen", "reason"),
    [
        (watch("threshold", A), sight("154"), "below your target"),
        (watch("threshold", A), sight("160"), "at your target"),
        (watch("threshold", A), sight("154", current=False), SUPERSEDED),
        (watch("threshold", A), sight("154", told_of_it=True), "offered again at $154.00, of which you were told"),
        (watch("threshold", F), sight("152.50"), "only 1 % lower than $154.00, of which you were told"),
        (
            watch("threshold", F, told_at=Decimal("1154.5"), target=Decimal(2000), currency="EUR"),
            sight("1154.50"),
            "you were told at €1,154.50; the next mail is after it has risen again or fallen a further 5 %",
        ),
        (watch("threshold", F), sight("100"), "fell a further 5 % or more, from $154.00"),
        (watch("threshold", F), sight("161"), "the price rose above your target: watching again"),
        (watch("low", F), sight("161"), "the price rose above what you were told: watching again"),
        (watch("low", A, low_days=90), sight("154", is_low=True), "the lowest in 90 days"),
        (watch("low", A), sight("154", is_low=True), "the lowest ever seen"),
        (watch("back", A), sight("154"), "back in stock"),
        (
            watch("threshold", A, told_at=Decimal(154), told_when=NOW - timedelta(hours=1)),
            sight("154"),
            "told already at 08:12 UTC, at $154.00: it goes up and down",
        ),
    ],
)
def test_every_verdict_says_why_in_the_readers_words(one: Watch, seen: Sight, reason: str) -> None:
    verdict = judge(one, seen)
    assert verdict is not None
    assert verdict.reason == reason
    assert len(verdict.reason) <= 200
