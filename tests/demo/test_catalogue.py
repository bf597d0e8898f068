"""The catalogue's facts are well-formed: what the database and the feed would refuse must not be in it."""

import re
from decimal import Decimal

import pytest

from pricing.models import Wine
from winecellar.demo import catalogue
from winecellar.demo.catalogue import MERCHANTS, PEOPLE, usual_price, wines


def test_there_are_sixty_wines_and_more_and_five_merchants():
    assert len(wines()) >= 60
    assert len(MERCHANTS) == 5


def test_ids_names_and_addresses_are_unique():
    assert len({wine.id for wine in wines()}) == len(wines())
    assert len({(wine.name, wine.vintage, wine.size_ml) for wine in wines()}) == len(wines())
    assert len({merchant.id for merchant in MERCHANTS}) == len({m.letter for m in MERCHANTS}) == 5
    assert len({person.email for person in PEOPLE}) == len(PEOPLE)


@pytest.mark.parametrize("wine", wines(), ids=lambda wine: wine.id)
def test_each_wine_is_one_that_the_site_would_take(wine):
    assert re.fullmatch(r"wn_[0-9]{4}", wine.id)
    assert wine.name == wine.name.strip() != ""
    assert wine.producer
    assert wine.country
    assert wine.region
    assert wine.vintage is None or 1990 <= wine.vintage <= 2025
    assert wine.size_ml in {375, 500, 620, 750, 1500}
    assert wine.colour in Wine.Colour.values
    assert wine.price_usd == wine.price_usd.quantize(Decimal("0.01")) > 20
    assert len(set(wine.sold_by)) == len(wine.sold_by) >= 2


def test_the_world_is_wide():
    assert len({wine.country for wine in wines()}) >= 15
    assert {wine.colour for wine in wines()} == set(Wine.Colour.values)
    assert {375, 1500} <= {wine.size_ml for wine in wines()}
    assert any(wine.vintage is None for wine in wines())


def test_the_wine_and_the_merchant_of_the_course_are_there():
    (montrose,) = [wine for wine in wines() if wine.id == "wn_4417"]
    assert (montrose.name, montrose.vintage, montrose.price_usd) == ("Ch. Montrose", 2016, Decimal("189.00"))
    assert "mch_082" in montrose.sold_by


def test_each_merchant_sells_another_part_of_it_at_another_level():
    sold = {merchant.id: frozenset(w.id for w in wines() if merchant.id in w.sold_by) for merchant in MERCHANTS}
    assert len(set(sold.values())) == 5
    assert all(20 <= len(part) < len(wines()) for part in sold.values())
    assert len({merchant.level for merchant in MERCHANTS}) == 5


def test_people_watch_what_is_sold_where_they_watch_it():
    offered = {(wine.id, merchant_id) for wine in wines() for merchant_id in wine.sold_by}
    for person in PEOPLE:
        assert len({(watch.wine_id, watch.merchant_id) for watch in person.watches}) == len(person.watches)
        for watch in person.watches:
            assert any(
                wine_id == watch.wine_id and watch.merchant_id in (None, merchant_id)
                for wine_id, merchant_id in offered
            )
            assert Decimal("0.9") <= watch.part < 1


def test_nothing_in_it_can_be_reached_on_the_internet():
    assert all(person.email.endswith(".example") for person in PEOPLE)
    assert all(merchant.website.endswith(".example") for merchant in MERCHANTS)


def test_a_usual_price_is_the_market_price_at_the_merchants_level():
    (montrose,) = [wine for wine in wines() if wine.id == "wn_4417"]
    (halcott,) = [merchant for merchant in MERCHANTS if merchant.id == "mch_231"]
    assert usual_price(montrose, halcott) == Decimal("206.01")


def test_reading_it_twice_gives_the_same():
    first = wines()
    catalogue.wines.cache_clear()
    assert wines() == first
