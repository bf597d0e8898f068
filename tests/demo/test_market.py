"""The price walk: deterministic, bounded, rounded as shops do, and shaped like a market."""

from collections import defaultdict
from decimal import Decimal

import pytest
from django.conf import settings as site
from hypothesis import given, settings
from hypothesis import strategies as st

from winecellar.demo import market
from winecellar.demo.market import Listing, Market, shop_price

ENDINGS = {"mch_a": (0, 50), "mch_b": (95,), "mch_c": (99,)}


def listings(usual="100.00", wines=4):
    return [Listing(f"wn_{n}", merchant, Decimal(usual)) for n in range(wines) for merchant in ENDINGS]


def moves(seed, count, **kwargs):
    walk = Market(seed=seed, listings=listings(**kwargs), endings=ENDINGS)
    return [walk.next_move() for _ in range(count)]


def test_the_same_seed_moves_the_same_prices():
    assert moves(7, 300) == moves(7, 300)
    assert moves(7, 300) != moves(8, 300)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), usual=st.decimals("5.00", "20000.00", places=2))
def test_prices_are_above_zero_have_two_decimals_and_never_jump_far(seed, usual):
    walk = Market(seed=seed, listings=listings(usual=str(usual), wines=2), endings=ENDINGS)
    quotes = [walk.next_move() for _ in range(60)] + walk.refresh("mch_a") + walk.day() + walk.refresh("mch_b")
    for quote in quotes:
        assert quote.new > 0
        assert quote.new.as_tuple().exponent == -2
        assert max(quote.new / quote.old, quote.old / quote.new) < 3 < site.FEED_HOLD_FACTOR


def test_every_move_is_a_change_and_begins_where_the_last_one_ended():
    walk = Market(seed=3, listings=listings(), endings=ENDINGS)
    prices = walk.prices()
    for _ in range(300):
        quote = walk.next_move()
        assert quote.old == prices[quote.wine_id, quote.merchant_id] != quote.new
        prices[quote.wine_id, quote.merchant_id] = quote.new
    assert walk.prices() == prices


def test_prices_stay_near_their_anchor_however_long_they_walk():
    last = moves(11, 20_000)[-500:]
    assert Decimal(85) < sum(quote.new for quote in last) / len(last) < Decimal(110)
    assert all(Decimal(100) * Decimal("0.55") < quote.new < Decimal(140) for quote in last)


def test_merchants_follow_each_other_with_a_delay(monkeypatch):
    monkeypatch.setattr(market, "PROMOTION_CHANCE", 0.0)
    monkeypatch.setattr(market, "DAILY_REPRICING", 1.0)
    walk = Market(seed=5, listings=listings(usual="9000.00", wines=20), endings=dict.fromkeys(ENDINGS, (0,)))
    days = []
    for _ in range(60):
        walk.day()
        days.append(walk.prices())
    delays = {best_delay(days, f"wn_{n}") for n in range(20)}
    assert delays - {0}, "somebody follows later"
    assert max(delays) <= market.LAST_FOLLOWER


def best_delay(days, wine_id):
    """By how many days the second merchant's series is the first's, shifted (either way)."""
    first = [prices[wine_id, "mch_a"] for prices in days]
    second = [prices[wine_id, "mch_b"] for prices in days]
    (delay,) = {
        min(shift, key=abs)
        for shift in [[s for s in range(-5, 6) if all(second[day] == first[day - s] for day in range(10, 50))]]
        if shift
    }
    return abs(delay)


def test_promotions_cut_ten_to_twenty_percent_and_end_again(monkeypatch):
    monkeypatch.setattr(market, "STEP", 0.0)
    walk = Market(seed=2, listings=listings(usual="1000.00", wines=10), endings=dict.fromkeys(ENDINGS, (0,)))
    seen = defaultdict(list)
    for _ in range(400):
        quote = walk.next_move()
        seen[quote.wine_id, quote.merchant_id].append(quote)
    quotes = [quote for same in seen.values() for quote in same]
    assert all(Decimal(800) <= quote.new <= Decimal(900) for quote in quotes if quote.promotion)
    assert all(quote.new == Decimal(1000) for quote in quotes if not quote.promotion)
    assert any(not later.promotion for same in seen.values() for later in same[1:]), "promotions end"


def test_a_promotion_can_be_started_by_hand():
    walk = Market(seed=1, listings=listings(usual="189.00"), endings=ENDINGS)
    quote = walk.promote("wn_2", "mch_a")
    assert quote.promotion
    assert Decimal("151") <= quote.new <= Decimal("170.50")
    assert walk.prices()["wn_2", "mch_a"] == quote.new


def test_a_refresh_names_every_price_of_the_merchant_and_no_other():
    walk = Market(seed=4, listings=listings(), endings=ENDINGS)
    for _ in range(50):
        walk.next_move()
    quotes = walk.refresh("mch_b")
    assert sorted(quote.wine_id for quote in quotes) == [f"wn_{n}" for n in range(4)]
    assert {quote.merchant_id for quote in quotes} == {"mch_b"}


def test_a_market_goes_on_from_the_prices_it_finds():
    found = [Listing("wn_1", merchant, Decimal(100), Decimal(now)) for merchant, now in [("mch_a", 80), ("mch_b", 80)]]
    walk = Market(seed=1, listings=found, endings=ENDINGS)
    first = walk.refresh("mch_a")[0]
    assert first.old == Decimal(80)
    assert Decimal(60) < first.new < Decimal(90), "not back at 100 at once"


@pytest.mark.parametrize(
    ("asked", "endings", "price"),
    [
        (188.70, (0,), "189.00"),
        (188.70, (0, 50), "188.50"),
        (188.70, (95,), "188.95"),
        (188.20, (99,), "187.99"),
        (188.60, (99,), "188.99"),
        (0.10, (0, 50), "0.50"),
        (0.10, (0,), "1.00"),
        (0.10, (99,), "0.99"),
    ],
)
def test_shops_round_to_their_endings(asked, endings, price):
    assert shop_price(asked, endings) == Decimal(price)
