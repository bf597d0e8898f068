"""Every state the queue's protocol can reach, within small bounds: no rule is ever broken, and work can always end.

Then the same with one bug planted at a time: the search must find each, or it looks at nothing. `-s` prints the
shortest history that leads to each bug's damage.
"""

from dataclasses import replace
from functools import cache

import pytest

from tests.model.page import lines
from tests.model.protocol import Protocol
from tests.model.statespace import Result, TooLargeError, search
from tests.model.variants import Broken

# What may happen in each; all have two workers, any pause, any expired lease and, where two share a key, any order.
# No single one has everything, since that would be millions of states; each pair of faults is together in some.
SOUND = {
    "three messages, two keys, late commits, low-water marks": Protocol("aab", late=True, marks=True),
    "three messages, two keys, failures of both kinds": Protocol("aab", transient=True, permanent=True),
    "three messages, two keys, crashes": Protocol("aab", crash=True),
    "three messages, two keys, lost connections, three receives": Protocol("aab", lets_go=True, max_receives=3),
    "two messages of a key, crashes, failures, redrive": Protocol(
        "aa", crash=True, transient=True, permanent=True, redrives=1
    ),
    "two messages of a key, late commits, marks, crashes, failures": Protocol(
        "aa", late=True, marks=True, crash=True, transient=True
    ),
    "two keys, late commits, aborts, marks, crashes": Protocol("ab", late=True, aborts=True, marks=True, crash=True),
    "one message, three receives, crashes, failures, two redrives": Protocol(
        "a", max_receives=3, crash=True, transient=True, permanent=True, redrives=2
    ),
    "one message, three receives, all faults": Protocol(
        "a",
        max_receives=3,
        late=True,
        aborts=True,
        marks=True,
        transient=True,
        permanent=True,
        crash=True,
        lets_go=True,
        redrives=1,
    ),
    "one message, two subscriptions, crashes, failures, redrive": Protocol(
        "a", subs=2, crash=True, transient=True, permanent=True, redrives=1
    ),
    "two messages of a key, two subscriptions": Protocol("aa", subs=2),
    "the first of three kills its workers": Protocol("aab", poison=0, late=True),
    "the second of three kills its workers": Protocol("aab", poison=1, late=True),
    "the third of three kills its workers": Protocol("aab", poison=2, late=True, max_receives=3),
}

# The smallest configuration in which each bug does harm, and the invariant it breaks ("stuck": work never ends).
CAUGHT = {
    Broken.CLAIM_BY_OLD_SNAPSHOT: (Protocol("a"), "I6"),
    Broken.CLAIM_IGNORES_LOCKS: (Protocol("a"), "I6"),
    Broken.CLAIM_AFTER_A_SKIPPED_ROW: (Protocol("aa"), "I5"),
    Broken.CLAIM_UNCOUNTED: (Protocol("a"), "I7"),
    Broken.CLAIM_SUSPECTS_TOGETHER: (Protocol("ab", poison=0), "I7"),
    Broken.CLAIM_BY_WORKERS_CLOCK: (Protocol("a"), "I6"),
    Broken.HEAD_IGNORES_BACKOFF: (Protocol("aa", transient=True), "I5"),
    Broken.HEAD_IGNORES_LEASED: (Protocol("aa"), "I5"),
    Broken.TOKEN_PER_WORKER: (Protocol("abc", workers=1, crash=True, late=True), "I1"),
    Broken.ACK_WITHOUT_TOKEN: (Protocol("a"), "I6"),
    Broken.PUT_BACK_WITHOUT_TOKEN: (Protocol("a", transient=True), "I6"),
    Broken.BURY_WITHOUT_TOKEN: (Protocol("a", permanent=True), "I6"),
    Broken.GIVE_BACK_WITHOUT_TOKEN: (Protocol("a", lets_go=True), "I6"),
    Broken.RESCUE_UNGUARDED: (Protocol("a", crash=True), "I6"),
    Broken.PART_OF_BATCH_LOST: (Protocol("aa"), "I5"),
    Broken.LATER_ONES_GO_ON: (Protocol("aa", transient=True), "I5"),
    Broken.LOST_BURY_GOES_ON: (Protocol("aa", permanent=True), "I5"),
    Broken.EFFECT_BEFORE_ACK: (Protocol("a", crash=True), "I3"),
    Broken.ACK_BEFORE_EFFECT: (Protocol("a", crash=True), "I1"),
    Broken.LEDGER_BEFORE_EFFECT: (Protocol("a", crash=True), "I1"),
    Broken.LEDGER_MISSING: (Protocol("a", permanent=True, redrives=2), "I3"),
    Broken.LEDGER_BY_MESSAGE_ONLY: (Protocol("a", subs=2), "I1"),
    Broken.BURY_DELETES_FIRST: (Protocol("a", permanent=True, crash=True), "I1"),
    Broken.BURY_INSERTS_FIRST: (Protocol("a", permanent=True, crash=True), "I1"),
    Broken.OUTBOX_ON_COMMIT: (Protocol("a", late=True), "I1"),
    Broken.SAID_BEFORE_COMMIT: (Protocol("a", late=True, aborts=True), "I1"),
    Broken.MARK_UNGATED: (Protocol("ab", late=True, marks=True), "stuck"),
    Broken.MARK_IS_A_CURSOR: (Protocol("ab", late=True, marks=True), "stuck"),
    Broken.XID_AFTER_ID: (Protocol("abc", workers=1, late=True, marks=True), "stuck"),
    Broken.ID_BEFORE_LOCK: (Protocol("aa", late=True), "I5"),
    Broken.REDRIVE_CLEARS_LEDGER: (Protocol("a", permanent=True, redrives=2), "I3"),
    Broken.REDRIVE_KEEPS_COUNT: (Protocol("a", permanent=True, redrives=1), "I7"),
    Broken.REDRIVE_REUSES_ID: (Protocol("ab", workers=1, permanent=True, redrives=1, marks=True), "stuck"),
}


@cache
def unbroken(setup: Protocol) -> Result:
    return search(replace(setup, symmetric=setup.workers == 2))


def described(result: Result) -> str:
    return f"{result.states:,} states, {result.transitions:,} transitions, {result.depth} steps deep"


@pytest.mark.parametrize("name", SOUND)
def test_no_reachable_state_breaks_a_rule_and_the_work_can_always_be_finished(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = unbroken(SOUND[name])
    with capsys.disabled():
        print(f"\n{name}: {described(result)}")
    assert result.counterexample is None, result.counterexample
    assert result.done > 0


@pytest.mark.parametrize("bug", Broken, ids=lambda bug: bug.name.lower())
def test_the_search_finds_every_planted_bug_and_nothing_without_it(bug: Broken) -> None:
    setup, harm = CAUGHT[bug]
    found = search(replace(setup, broken=bug)).counterexample
    assert found is not None, f"the search does not notice: {bug}"
    print(f"\n{bug}:\n{found}")
    assert found.rule.startswith("the work can never be finished" if harm == "stuck" else harm), found
    assert lines()[bug].steps == str(len(found.history)), "docs/mutations.md tells another number of steps"
    assert unbroken(setup).counterexample is None


def test_a_space_that_does_not_end_within_its_bound_is_an_error_and_not_a_success() -> None:
    with pytest.raises(TooLargeError):
        search(Protocol("aab", crash=True), bound=1_000)
