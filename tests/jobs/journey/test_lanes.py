"""What a lane says of an event, from what is known of it. Pure."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.journey.lanes import Act, Facts, Letter, Past, Queued, State, lane

T = datetime(2026, 3, 14, 9, 12, 4, tzinfo=UTC)
NOW = T + timedelta(minutes=10)
WEEK = timedelta(days=7)
FACTS = Facts(published_at=T, subscribed_at=T - timedelta(days=100))
FAILURE = {"at": (T + timedelta(seconds=2)).isoformat(), "receive": 1, "error_class": "Timeout", "reason": "503"}
QUEUED = Queued(1, NOW, 1, T, (FAILURE,), leased=False, visible=True)
LETTER = Letter(
    *(7, T + timedelta(seconds=5), T, 2, "PermanentError: no price", (FAILURE, {**FAILURE, "receive": 2})),
    decision="",
    redrive=None,
    sent_at=None,
    settled_at=None,
    outcome="",
    applied=False,
)
REDRIVEN = replace(
    LETTER,
    decision="redriven as it is",
    redrive=3,
    sent_at=T + timedelta(minutes=2),
    acts=(Act(T + timedelta(minutes=1), "redrive", "dana", "mended"),),
)


def said(facts: Facts, now: datetime = NOW) -> tuple[State, str]:
    found = lane("s", facts, now=now, ledger=WEEK)
    return found.state, found.now


@pytest.mark.parametrize(
    ("facts", "state", "words"),
    [
        ({"queued": [replace(QUEUED, failures=(), receive_count=0)]}, State.AVAILABLE, "when its turn comes"),
        ({"queued": [replace(QUEUED, leased=True, visible=False)]}, State.IN_FLIGHT, "In flight, receive 1"),
        ({"queued": [replace(QUEUED, leased=True)]}, State.REDELIVERED, "worker fell silent on receive 1"),
        ({"queued": [replace(QUEUED, visible=False)]}, State.REDELIVERED, "waits before it is tried again"),
        ({"queued": [replace(QUEUED, visible=False, receive_count=0)]}, State.AVAILABLE, "not due yet"),
        ({"queued": [QUEUED], "paused_at": T}, State.AVAILABLE, "The subscription is paused"),
        ({"queued": [replace(QUEUED, delivery_id=None)]}, State.AVAILABLE, "behind more of its partition"),
        ({"applied_at": T}, State.ACKED, "Applied"),
        ({"letters": [LETTER]}, State.DEAD_LETTERED, "letter 7; it waits for a decision"),
        ({"letters": [replace(LETTER, decision="discarded")]}, State.DEAD_LETTERED, "letter 7; discarded"),
        ({"letters": [REDRIVEN], "queued": [QUEUED]}, State.AVAILABLE, "when its turn comes"),
        ({"letters": [REDRIVEN], "applied_at": T}, State.ACKED, "Applied"),
        ({"subscribed_at": None}, State.UNKNOWN, "no such subscription any more"),
        ({"subscribed_at": NOW}, State.UNKNOWN, "younger than the message"),
        ({}, State.UNKNOWN, "That should not be"),
    ],
)
def test_a_lane_says_where_the_event_stands(facts: dict[str, Any], state: State, words: str) -> None:
    found, text = said(replace(FACTS, **facts))
    assert (found, words in text) == (state, True), text


def test_what_the_ledger_has_forgotten_is_said_to_be_forgotten_and_not_to_be_lost() -> None:
    assert said(FACTS, T + WEEK + timedelta(hours=1)) == (
        State.ACKED,
        "Acked; when is forgotten, for the ledger is kept 7 days.",
    )
    deep = replace(FACTS, queued=[replace(QUEUED, delivery_id=None)])
    assert said(deep, T + WEEK + timedelta(hours=1)) == (
        State.UNKNOWN,
        "It was acked and that is forgotten, or it waits behind more than were looked at.",
    )


def test_the_steps_of_a_letter_that_was_redriven_and_applied_are_in_the_order_of_time() -> None:
    done = replace(REDRIVEN, settled_at=T + timedelta(minutes=3), outcome="applied", applied=True)
    found = lane("s", replace(FACTS, letters=[done], applied_at=T + timedelta(minutes=3)), now=NOW, ledger=WEEK)
    assert [(step.state, step.what) for step in found.steps] == [
        (State.IN_FLIGHT, "handed out for the first time"),
        (State.REDELIVERED, "receive 1: Timeout: 503"),
        (State.DEAD_LETTERED, "letter 7, after 2 receives: PermanentError: no price"),
        (State.DECIDED, "redrive by dana: mended"),
        (State.AVAILABLE, "sent again by redrive 3"),
        (State.ACKED, "applied, and acked in the same transaction"),
        (State.ACKED, "redrive 3: applied"),
    ]


def test_what_came_again_says_on_which_receive_it_was_applied_and_what_was_suppressed() -> None:
    again = Past(T + timedelta(seconds=9), False, 2, T, (FAILURE,))
    twin = Past(T + timedelta(seconds=20), True, 1, None, ())
    found = lane("s", replace(FACTS, past=[again, twin], applied_at=T + timedelta(seconds=9)), now=NOW, ledger=WEEK)
    assert [step.what for step in found.steps] == [
        "handed out for the first time",
        "receive 1: Timeout: 503",
        "applied on receive 2, and acked in the same transaction",
        "came again, on receive 1; the ledger knew it, so it had no effect",
    ]


def test_a_failure_whose_time_is_unreadable_is_still_told_at_the_end() -> None:
    found = lane("s", replace(FACTS, queued=[replace(QUEUED, failures=({"receive": 1},))]), now=NOW, ledger=WEEK)
    assert [(step.at, step.what) for step in found.steps][-1] == (None, "receive 1: failed")
