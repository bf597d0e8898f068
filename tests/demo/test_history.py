"""Ninety days of past prices: for every offer, in order, plausible, and the same for the same seed."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from winecellar.demo.history import past_prices
from winecellar.demo.load import endings, listings

NOW = datetime(2030, 5, 17, 9, 30, tzinfo=UTC)


def walk(seed=1):
    return past_prices(seed=seed, listings=listings(), endings=endings(), now=NOW)


def test_every_offer_has_a_price_from_the_first_day_on():
    prices = walk()
    first_day = {(p.wine_id, p.merchant_id) for p in prices if p.observed_at < NOW - timedelta(days=89)}
    assert first_day == {(listing.wine_id, listing.merchant_id) for listing in listings()}


def test_it_is_in_order_of_time_and_ends_before_now():
    times = [price.observed_at for price in walk()]
    assert times == sorted(times)
    assert NOW - timedelta(days=90) <= times[0]
    assert times[-1] < NOW


def test_each_row_of_an_offer_is_a_change_and_there_are_several():
    series = defaultdict(list)
    for price in walk():
        series[price.wine_id, price.merchant_id].append(price.price_usd)
    assert all(before != after for prices in series.values() for before, after in pairwise(prices))
    assert 5 < sum(map(len, series.values())) / len(series) < 40


def test_the_same_seed_gives_the_same_history():
    assert walk(1) == walk(1) != walk(2)
