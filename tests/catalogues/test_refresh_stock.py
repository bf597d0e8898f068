"""What a file says is sold out, or has no price, or is called something else: the offer ends, and returns."""

from decimal import Decimal
from typing import Any

import pytest

from pricing import listings
from pricing.matching import Ask, read_listing
from pricing.models import Listing, Offer
from pricing.services import record_observations
from tests.catalogues import refreshing
from tests.catalogues.refreshing import at, counts, csv, prices, shelf, taken
from tests.pricing.observed import published, seen

pytestmark = pytest.mark.django_db(transaction=True)
HEAD = f"{refreshing.HEAD},availability"


def row(n: int, price: str | int = 20, stock: str = "in stock", **said: Any) -> str:
    return f"{refreshing.row(n, price, **said)},{stock}"


def stock(*rows: str) -> bytes:
    return csv(*rows, head=HEAD)


def told(since=0):
    return [(message["type"].removeprefix("wine."), message["key"]) for message in published()[since:]]


def test_a_row_that_is_sold_out_ends_the_offer_once_and_back_in_stock_it_returns(merchant):
    shelf(2)
    taken(merchant, stock(row(1), row(2)))
    for night in (1, 2):
        file = taken(merchant, stock(row(1, stock="sold out"), row(2)), hours=24 * night)
        assert counts(file) == {"kept": 1, "unchanged": 1}
        assert prices() == {"wn_2": "20.00"}
    [gone] = published()[2:]
    assert (gone["type"], gone["key"], gone["body"]["why"]) == ("wine.offer_withdrawn", "wn_1", "out of stock")
    assert counts(taken(merchant, stock(row(1), row(2)), hours=72)) == {"changed": 1, "unchanged": 1}
    assert told(since=3) == [("offer_returned", "wn_1")]
    assert prices() == {"wn_1": "20.00", "wn_2": "20.00"}


def test_a_row_without_a_price_any_more_ends_the_offer_too(merchant):
    shelf(1)
    taken(merchant, stock(row(1)))
    assert counts(taken(merchant, stock(row(1, "on request")), hours=24)) == {"kept": 1}
    assert prices() == {}


def test_an_offer_that_somebody_withdrew_meanwhile_is_not_confirmed_but_returns(merchant):
    shelf(1)
    data = stock(row(1))
    taken(merchant, data)
    Offer.objects.update(withdrawn_at=at(12), seen_at=at(12))
    assert counts(taken(merchant, data, hours=24)) == {"changed": 1}
    assert prices() == {"wn_1": "20.00"}


@pytest.mark.parametrize("hours", [36, 60])
def test_what_is_sold_out_still_ends_a_price_that_was_sent_before_it_and_none_that_was_sent_after(merchant, hours):
    shelf(1)
    taken(merchant, stock(row(1)))
    sold_out = stock(row(1, stock="sold out"))
    taken(merchant, sold_out, hours=24)
    record_observations(
        merchant=merchant, observations=[seen("18.00", at(hours), "wn_1")], attributes={}, now=at(hours)
    )
    assert prices() == {"wn_1": "18.00"}
    assert counts(taken(merchant, sold_out, hours=48)) == {"kept": 1}
    assert prices() == ({} if hours == 36 else {"wn_1": "18.00"})


def test_what_is_sold_out_in_the_file_and_not_in_the_shop_stays(merchant):
    shelf(1)
    taken(merchant, stock(row(1)))
    listed = read_listing("Cuvée 1", size="75cl", vintage="2019")
    ask = Ask("shop/1", listed, Decimal("20.00"), "USD", at(12))
    listings.record(merchant=merchant, asks=[ask], attributes={}, now=at(12))
    for night in (1, 2):
        assert counts(taken(merchant, stock(row(1, stock="0")), hours=24 * night)) == {"kept": 1}
        assert prices() == {"wn_1": "20.00"}
    assert told() == [("price_changed", "wn_1")]


@pytest.mark.parametrize("chunk", [1, 2, 1_000])
def test_names_that_change_places_change_prices_whatever_the_chunks(merchant, settings, chunk):
    settings.CATALOGUE_WINDOW = settings.CATALOGUE_CHUNK = chunk
    shelf(3)
    taken(merchant, stock(row(1, 20), row(2, 30), row(3, 40)))
    rows = row(1, 20, title="Cuvée 2"), row(2, 30, title="Cuvée 3"), row(3, 40, title="Cuvée 1")
    assert counts(taken(merchant, stock(*rows), hours=24)) == {"changed": 3}
    assert prices() == {"wn_1": "40.00", "wn_2": "20.00", "wn_3": "30.00"}
    assert all(kind != "late_price_observed" for kind, _ in told())
    assert counts(taken(merchant, stock(*rows), hours=48)) == {"unchanged": 3}


@pytest.mark.parametrize("chunk", [1, 2, 1_000])
def test_of_three_listings_of_one_wine_the_cheapest_that_is_left_counts_whatever_the_chunks(merchant, settings, chunk):
    settings.CATALOGUE_WINDOW = settings.CATALOGUE_CHUNK = chunk
    shelf(1)
    taken(merchant, stock(row(1, 25), row(1, 20, id="sku-b"), row(1, 22, id="sku-c")))
    rows = row(1, 24), row(1, 20, "sold out", id="sku-b"), row(1, 22, "sold out", id="sku-c")
    taken(merchant, stock(*rows), hours=24)
    assert prices() == {"wn_1": "24.00"}
    assert all(kind != "late_price_observed" for kind, _ in told())
    gone = [row(1, 24, "sold out"), *rows[1:]]
    assert counts(taken(merchant, stock(*gone), hours=48)) == {"kept": 3}
    assert prices() == {}


def test_a_row_that_is_rejected_says_nothing_of_a_listing_that_is_sold_out(merchant):
    shelf(1)
    taken(merchant, stock(row(1, 24), row(1, 20, id="sku-b")))
    taken(merchant, stock(row(1, 24), row(1, 20, "sold out", id="sku-b")), hours=24)
    record_observations(merchant=merchant, observations=[seen("23.00", at(36), "wn_1")], attributes={}, now=at(36))
    count = len(published())
    file = taken(merchant, stock(row(1, 24, "ask us"), row(1, 20, "ask us", id="sku-b")), hours=48)
    assert counts(file) == {"rejected": 2}
    assert len(published()) == count
    assert Listing.objects.get(source_id="sku-b").price is None
