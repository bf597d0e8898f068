"""What follows from what, for every state and every event: the table is the specification, the code must agree."""

import itertools

import pytest

from winecellar.purchases import rules, saga, words
from winecellar.purchases.rules import Bottles, Event, Mails, Next, RefusedError, State, decide
from winecellar.purchases.saga import Category, Step

CHARGE, CALL_OFF, REFUND = "charge_purchase", "call_off_purchase", "refund_purchase"
S, E = State, Event
KEPT = "kept"  # nothing changes and nothing is asked
NO = "refused"  # a person may not

SOLD = Next(S.NOTIFYING, Bottles.SELL, mails=Mails.SALE)
TAKEN = Next(S.NOTIFYING, Bottles.TAKE, mails=Mails.SALE)
LET_GO = Next(S.RELEASED, Bottles.RELEASE)
TO_REFUND = Next(S.REFUNDING, command=REFUND)
BACK = Next(S.REFUNDED, mails=Mails.REFUND)

_RESERVED = {
    E.CHARGED: SOLD,
    E.DECLINED: LET_GO,
    E.CANCELLED: LET_GO,
    E.PENDING: Next(S.ASKING, command=CHARGE, later=True),
    E.NO_ANSWER: Next(S.ASKING),
    E.REFUND_MADE: Next(S.REFUNDED, Bottles.RELEASE, mails=Mails.REFUND),
    E.TIME_UP: Next(S.LAPSED, Bottles.RELEASE, command=CALL_OFF),
    E.COMPENSATE: Next(S.CALLING_OFF, Bottles.RELEASE, command=CALL_OFF),
}
_CALLED_OFF = {
    E.CHARGED: TO_REFUND,
    E.DECLINED: Next(S.RELEASED),
    E.CANCELLED: Next(S.RELEASED),
    E.REFUND_MADE: BACK,
    E.PATIENCE_OVER: Next(S.CHARGE_UNCLEAR),
}
TABLE = {
    S.CHARGING: {**_RESERVED, E.RESUME: Next(S.CHARGING, command=CHARGE), E.RESOLVE: NO},
    S.ASKING: {**_RESERVED, E.RESUME: Next(S.ASKING, command=CHARGE), E.RESOLVE: NO},
    S.LAPSED: {
        **_CALLED_OFF,
        E.PENDING: Next(S.LAPSED, command=CALL_OFF, later=True),
        E.RESUME: Next(S.LAPSED, command=CALL_OFF),
        E.COMPENSATE: Next(S.CALLING_OFF, command=CALL_OFF),
        E.RESOLVE: NO,
    },
    S.CALLING_OFF: {
        **_CALLED_OFF,
        E.PENDING: Next(S.CALLING_OFF, command=CALL_OFF, later=True),
        E.RESUME: Next(S.CALLING_OFF, command=CALL_OFF),
        E.COMPENSATE: NO,
        E.RESOLVE: NO,
    },
    S.NOTIFYING: {
        E.NOTIFIED: Next(S.COMPLETED),
        E.REFUND_MADE: Next(S.REFUND_UNCLEAR),
        E.RESUME: Next(S.NOTIFYING, mails=Mails.SALE),
        E.COMPENSATE: NO,
        E.RESOLVE: NO,
    },
    S.REFUNDING: {
        E.REFUND_MADE: BACK,
        E.REFUND_FAILED: Next(S.REFUND_UNCLEAR),
        E.PATIENCE_OVER: Next(S.REFUND_UNCLEAR),
        E.PENDING: Next(S.REFUNDING, command=REFUND, later=True),
        E.RESUME: Next(S.REFUNDING, command=REFUND),
        E.COMPENSATE: NO,
        E.RESOLVE: NO,
    },
    S.CHARGE_UNCLEAR: {
        E.CHARGED: TO_REFUND,
        E.DECLINED: Next(S.RELEASED),
        E.CANCELLED: Next(S.RELEASED),
        E.REFUND_MADE: BACK,
        E.RESUME: Next(S.LAPSED, command=CALL_OFF),
        E.COMPENSATE: Next(S.CALLING_OFF, command=CALL_OFF),
        E.RESOLVE: Next(S.RESOLVED),
    },
    S.REFUND_UNCLEAR: {
        E.RESUME: Next(S.REFUNDING, command=REFUND),
        E.COMPENSATE: NO,
        E.RESOLVE: Next(S.RESOLVED),
    },
    S.COMPLETED: {E.REFUND_MADE: Next(S.REFUND_UNCLEAR), E.RESUME: NO, E.COMPENSATE: NO, E.RESOLVE: NO},
    S.RELEASED: {E.CHARGED: TO_REFUND, E.RESUME: NO, E.COMPENSATE: NO, E.RESOLVE: NO},
    S.REFUNDED: {E.REFUND_FAILED: Next(S.REFUND_UNCLEAR), E.RESUME: NO, E.COMPENSATE: NO, E.RESOLVE: NO},
    S.RESOLVED: {E.RESUME: NO, E.COMPENSATE: NO, E.RESOLVE: NO},
}


@pytest.mark.parametrize(("state", "event"), itertools.product(State, Event))
def test_every_state_knows_what_follows_from_every_event(state: State, event: Event) -> None:
    expected = TABLE[state].get(event, KEPT)
    for there in (False, True):
        if expected == NO:
            with pytest.raises(RefusedError):
                decide(state, event, there=there)
        elif (state, event, there) == (S.LAPSED, E.CHARGED, True):
            assert decide(state, event, there=there) == TAKEN
        else:
            assert decide(state, event, there=there) == (Next(state) if expected == KEPT else expected)


def test_what_is_reserved_is_let_go_or_sold_exactly_where_a_purchase_leaves_the_states_that_reserve() -> None:
    for state, event, there in itertools.product(State, Event, (False, True)):
        try:
            follows = decide(state, event, there=there)
        except RefusedError:
            continue
        ends = state in rules.RESERVES and follows.state not in rules.RESERVES
        assert ends == (follows.bottles in (Bottles.RELEASE, Bottles.SELL)), (state, event)
        assert follows.state not in rules.RESERVES or state in rules.RESERVES, "nothing is reserved anew"


def test_from_every_state_the_world_alone_or_a_person_can_end_it() -> None:
    """No state is a trap: whatever is chosen, some event leads on, until it has ended."""
    reached = {state: {decide(state, event, there=True).state for event in _allowed(state)} for state in State}
    for state in State:
        seen, waiting = {state}, [state]
        while waiting:
            for other in reached[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        assert seen & rules.ENDED, state


def _allowed(state: State) -> list[Event]:
    return [event for event in Event if TABLE[state].get(event, KEPT) != NO]


def test_every_state_and_event_has_its_words() -> None:
    for state in State:
        assert words.STATES[state] and words.SAYS[state] and state in words.CHIPS
    assert set(words.EVENTS) == set(Event)


def test_the_saga_has_what_cannot_be_undone_last_and_says_so_of_any_other_order() -> None:
    assert [step.category for step in saga.SAGA] == [
        Category.REVERSIBLE,
        Category.COMPENSABLE,
        Category.IRREVERSIBLE,
    ]
    assert list(saga.problems(saga.SAGA)) == []
    assert list(saga.problems([saga.RESERVE, saga.NOTIFY, saga.CHARGE])) == [
        "notify cannot be undone and comes before charge, which can fail."
    ]


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (Step("a", Category.REVERSIBLE, may_fail=True), "a is reversible and names no compensation."),
        (
            Step("a", Category.COMPENSABLE, may_fail=True, undone_by="b"),
            "a must say what stays after its compensation if, and only if, something does.",
        ),
        (
            Step("a", Category.IRREVERSIBLE, may_fail=False, undone_by="b"),
            "a is irreversible and names a compensation.",
        ),
    ],
)
def test_a_step_that_does_not_say_what_undoes_it_is_refused(step: Step, says: str) -> None:
    assert list(saga.problems([step])) == [says]
