from datetime import timedelta
from decimal import Decimal
from itertools import permutations

import pytest

from pricing import rules
from pricing.rules import Standing, Verdict
from tests.cast import NOW
from tests.pricing.observed import seen

MINUTE = timedelta(minutes=1)
FACTOR = Decimal(10)
# 189.00 since nine, last confirmed at ten.
STANDING = Standing(Decimal("189.00"), NOW, NOW + 60 * MINUTE, "evt_1", NOW)
TABLE = [
    # price, minutes after nine, verdict
    ("154.00", 61, Verdict.APPLIED),
    ("154.00", 60, Verdict.STALE),  # the merchant said 189.00 for this very time: the first stays
    ("154.00", 30, Verdict.STALE),  # between two times at which it was 189.00
    ("154.00", 0, Verdict.STALE),
    ("154.00", -1, Verdict.STALE),
    ("189.00", 61, Verdict.UNCHANGED),
    ("189.00", 60, Verdict.UNCHANGED),
    ("189.00", 30, Verdict.UNCHANGED),
    ("189.00", 0, Verdict.UNCHANGED),
    ("189.00", -1, Verdict.STALE),  # it was so already before we knew: history
    ("1890.00", 61, Verdict.APPLIED),  # exactly ten times
    ("1890.01", 61, Verdict.HELD),
    ("18.90", 61, Verdict.APPLIED),
    ("18.89", 61, Verdict.HELD),
    ("18900.00", 61, Verdict.HELD),  # cents
    ("1.89", -1, Verdict.HELD),  # nor does a suspect price become history unasked
]


@pytest.mark.parametrize(("price", "minutes", "verdict"), TABLE)
def test_the_verdict_about_an_observation(price, minutes, verdict):
    assert rules.judge(seen(price, NOW + minutes * MINUTE), STANDING, hold_factor=FACTOR) is verdict


def test_the_first_price_of_a_wine_at_a_merchant_is_applied_whatever_it_is():
    assert rules.judge(seen("99999999.99"), None, hold_factor=FACTOR) is Verdict.APPLIED


@pytest.mark.parametrize(("minutes", "verdict"), [(61, Verdict.APPLIED), (30, Verdict.STALE)])
def test_a_price_that_a_person_vouches_for_is_never_held(minutes, verdict):
    assert rules.judge(seen("18900.00", NOW + minutes * MINUTE), STANDING, hold_factor=None) is verdict


def test_being_seen_again_moves_nothing_but_the_time_of_being_seen():
    later = rules.seen_again(STANDING, seen("189.00", NOW + 90 * MINUTE))
    assert later == Standing(Decimal("189.00"), NOW, NOW + 90 * MINUTE, "evt_1", NOW)
    assert rules.seen_again(STANDING, seen("189.00", NOW + MINUTE)) == STANDING


def replayed(observations):
    standing = None
    for observation in observations:
        verdict = rules.judge(observation, standing, hold_factor=FACTOR)
        if verdict is Verdict.APPLIED:
            standing = rules.applied(observation, event_id="evt_2", now=NOW)
        elif verdict is Verdict.UNCHANGED:
            standing = rules.seen_again(standing, observation)
    return standing


def test_in_all_720_orders_of_six_observations_the_latest_price_stands():
    prices = ["189.00", "154.00", "189.00", "189.00", "160.00", "154.00"]
    six = [seen(price, NOW + number * MINUTE) for number, price in enumerate(prices)]
    for order in permutations(six):
        standing = replayed([*order, order[0], order[3]])
        assert (standing.price_usd, standing.seen_at) == (Decimal("154.00"), NOW + 5 * MINUTE)


# --- Other money, and offers that end ---------------------------------------------------------------------------

IN_EUROS = Standing(Decimal("110.00"), NOW, NOW + 60 * MINUTE, "evt_1", NOW, Decimal("100.00"), "EUR")
GONE = rules.withdrawn(STANDING, at=NOW + 70 * MINUTE, now=NOW)


def euros(price, minutes, dollars=None):
    usd = None if dollars is None else Decimal(dollars)
    return rules.Observation("wn_4417", usd, NOW + minutes * MINUTE, Decimal(price), "EUR")


@pytest.mark.parametrize(
    ("observation", "verdict"),
    [
        (euros("100.00", 61), Verdict.UNCHANGED),  # whatever it is in dollars
        (euros("100.00", 61, "9.00"), Verdict.UNCHANGED),
        (euros("90.00", 61), Verdict.NO_RATE),
        (euros("90.00", 61, "99.00"), Verdict.APPLIED),
        (euros("90.00", 30, "99.00"), Verdict.STALE),
        (euros("90.00", 30), Verdict.NO_RATE),  # history is in dollars too
        (euros("1000.01", 61, "99.00"), Verdict.HELD),  # more than ten times the euros, whatever the dollars
        (euros("1000.01", 61), Verdict.HELD),
        (euros("1000.00", 61, "9999.00"), Verdict.APPLIED),
        (seen("110.00", NOW + 61 * MINUTE), Verdict.UNCHANGED),
        (seen("100.00", NOW + 61 * MINUTE), Verdict.APPLIED),
        (seen("1100.01", NOW + 61 * MINUTE), Verdict.HELD),
    ],
)
def test_the_verdict_where_the_merchant_asks_in_other_money(observation, verdict):
    assert rules.judge(observation, IN_EUROS, hold_factor=FACTOR) is verdict


@pytest.mark.parametrize(
    ("price", "minutes", "verdict"),
    [
        ("189.00", 71, Verdict.RETURNED),
        ("154.00", 71, Verdict.APPLIED),
        ("189.00", 70, Verdict.UNCHANGED),  # of that very time: it is gone
        ("189.00", 65, Verdict.UNCHANGED),
        ("154.00", 70, Verdict.STALE),
        ("18900.00", 71, Verdict.HELD),
    ],
)
def test_the_verdict_about_a_price_of_what_was_withdrawn(price, minutes, verdict):
    assert rules.judge(seen(price, NOW + minutes * MINUTE), GONE, hold_factor=FACTOR) is verdict


def test_a_withdrawal_that_is_older_than_what_was_said_since_changes_nothing():
    assert rules.withdrawn(STANDING, at=NOW + 59 * MINUTE, now=NOW) == STANDING
    assert rules.withdrawn(STANDING, at=NOW + 60 * MINUTE, now=NOW).withdrawn_at == NOW + 60 * MINUTE


def test_said_again_it_is_withdrawn_since_the_first_time_and_a_price_from_between_is_late():
    again = rules.withdrawn(GONE, at=NOW + 90 * MINUTE, now=NOW)
    assert again.withdrawn_at == NOW + 70 * MINUTE
    assert rules.judge(seen("154.00", NOW + 80 * MINUTE), again, hold_factor=FACTOR) is Verdict.STALE
    assert rules.judge(seen("189.00", NOW + 80 * MINUTE), again, hold_factor=FACTOR) is Verdict.UNCHANGED


def test_what_returns_is_offered_since_then_at_the_price_it_had():
    back = rules.returned(GONE, seen("189.00", NOW + 80 * MINUTE), event_id="evt_2", now=NOW)
    assert back == Standing(Decimal("189.00"), NOW + 80 * MINUTE, NOW + 80 * MINUTE, "evt_2", NOW)


def test_in_all_orders_of_prices_and_withdrawals_the_latest_says_whether_it_is_offered():
    said = [("189.00", 0), (None, 1), ("189.00", 2), ("154.00", 3), (None, 4), ("154.00", 5)]
    for length in (5, 6):
        for order in permutations(said[:length]):
            standing = None
            for price, minutes in order:
                at = NOW + minutes * MINUTE
                if price is None:
                    standing = standing and rules.withdrawn(standing, at=at, now=NOW)
                    continue
                verdict = rules.judge(seen(price, at), standing, hold_factor=FACTOR)
                if verdict is Verdict.APPLIED:
                    standing = rules.applied(seen(price, at), event_id="evt_2", now=NOW)
                elif verdict is Verdict.RETURNED:
                    standing = rules.returned(standing, seen(price, at), event_id="evt_2", now=NOW)
                elif verdict is Verdict.UNCHANGED:
                    standing = rules.seen_again(standing, seen(price, at))
            # What was never offered cannot end: a withdrawal before any price is forgotten.
            if order[0][0] is not None:
                assert (standing.withdrawn_at is not None) == (length == 5), order
