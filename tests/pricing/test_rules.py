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
