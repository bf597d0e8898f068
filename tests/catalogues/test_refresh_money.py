"""Files in other money: converted by the rate of their day, held without one, and compared in their own money."""

from decimal import Decimal

import pytest
from django.test import Client

from pricing import holds
from pricing.models import HeldPrice, Listing, Offer
from pricing.services import record_observations
from tests.catalogues.refreshing import at, counts, csv, prices, row, shelf, taken
from tests.pricing.observed import load_rates, published, seen

pytestmark = pytest.mark.django_db(transaction=True)
DAYS = ("2026-03-14", "2026-03-15", "2026-03-16")


def euros(n, price=20, **said):
    return row(n, price, currency="EUR", **said)


def offers():
    rows = Offer.objects.order_by("wine_id").values_list("wine_id", "price_usd", "native_price", "native_currency")
    return [(wine_id, str(dollars), str(native), currency) for wine_id, dollars, native, currency in rows]


@pytest.mark.parametrize(("tax", "said"), [("included", "with tax"), ("excluded", "without tax"), ("", None)])
def test_whether_a_files_prices_have_tax_in_them_is_said_with_the_offer_on_the_wines_page(merchant, tax, said):
    shelf(1)
    taken(merchant, csv(row(1)), tax=tax)
    assert Offer.objects.get().tax == tax
    page = Client().get("/wines/wn_1").content.decode()
    assert [words for words in ("with tax", "without tax") if f"<small>{words}</small>" in page] == [said] * bool(said)


def test_a_merchant_that_says_later_what_its_files_mean_need_send_no_other_prices(merchant):
    shelf(2)
    taken(merchant, csv(row(1), row(2)))
    taken(merchant, csv(row(1), row(2)), hours=24, tax="excluded")
    assert set(Offer.objects.values_list("tax", flat=True)) == {"excluded"}
    assert len(published()) == 2, "a price that is the same is no news"


def test_a_price_in_euros_is_published_in_dollars_of_its_day(merchant):
    load_rates(DAYS[0], USD="1.10")
    shelf(1)
    assert counts(taken(merchant, csv(euros(1)))) == {"changed": 1}
    assert offers() == [("wn_1", "22.00", "20.00", "EUR")]
    [message] = published()
    assert (str(message["body"]["new_price_usd"]), str(message["body"]["native_price"])) == ("22.00", "20.00")


def test_the_same_file_changes_nothing_when_the_rate_has_moved_and_confirms_its_prices(merchant):
    load_rates(DAYS[0], USD="1.10")
    shelf(2)
    data = csv(euros(1), euros(2, 30))
    taken(merchant, data)
    before = offers(), published(), list(Listing.objects.order_by("pk").values())
    load_rates(DAYS[1], USD="1.25")
    assert counts(taken(merchant, data, hours=24)) == {"unchanged": 2}
    assert (offers(), published(), list(Listing.objects.order_by("pk").values())) == before
    assert set(Offer.objects.values_list("seen_at", flat=True)) == {at(24)}


def test_a_change_is_judged_in_euros_and_published_at_the_rate_of_the_new_day(merchant):
    load_rates(DAYS[0], USD="1.10")
    shelf(2)
    taken(merchant, csv(euros(1), euros(2)))
    load_rates(DAYS[1], USD="1.25")
    assert counts(taken(merchant, csv(euros(1), euros(2, 18)), hours=24)) == {"changed": 1, "unchanged": 1}
    assert prices() == {"wn_1": "22.00", "wn_2": "22.50"}


def test_without_a_rate_each_price_is_held_once_and_counted_each_night(merchant):
    shelf(1)
    data = csv(euros(1))
    for night in range(2):
        assert counts(taken(merchant, data, hours=24 * night)) == {"held": 1}
    held = HeldPrice.objects.get()
    assert (held.cause, held.native_price, held.native_currency, held.seen_at) == ("no_rate", 20, "EUR", at(24))
    assert (prices(), published()) == ({}, [])
    load_rates(DAYS[0], USD="1.10")
    assert holds.release_convertible(now=at(30)) == 1
    assert prices() == {"wn_1": "22.00"}
    assert counts(taken(merchant, data, hours=48)) == {"unchanged": 1}
    assert len(published()) == 1


def test_a_merchant_who_goes_over_to_euros_has_its_prices_in_euros_from_then_on(merchant):
    load_rates(DAYS[0], USD="1.10")
    shelf(2)
    taken(merchant, csv(row(1, 22), row(2, 22)))
    file = taken(merchant, csv(euros(1), euros(2, 21)), hours=24)
    assert counts(file) == {"unchanged": 1, "changed": 1}  # 20 euros are 22 dollars
    assert offers() == [("wn_1", "22.00", "20.00", "EUR"), ("wn_2", "23.10", "21.00", "EUR")]
    assert counts(taken(merchant, csv(euros(1), euros(2, 21)), hours=48)) == {"unchanged": 2}


def test_as_many_dollars_as_the_file_says_euros_are_another_price(merchant):
    load_rates(DAYS[0], USD="1.10")
    shelf(1)
    data = csv(euros(1))
    taken(merchant, data)
    record_observations(merchant=merchant, observations=[seen("20.00", at(12), "wn_1")], attributes={}, now=at(12))
    assert prices() == {"wn_1": "20.00"}
    assert counts(taken(merchant, data, hours=24)) == {"changed": 1}
    assert offers() == [("wn_1", "22.00", "20.00", "EUR")]


@pytest.mark.parametrize(("dollars", "cheapest"), [(21, "21.00"), (23, "22.00")])
def test_of_two_listings_in_two_currencies_the_cheaper_in_dollars_counts_and_no_rate_changes_that(
    merchant, dollars, cheapest
):
    load_rates(DAYS[0], USD="1.10")
    shelf(1)
    data = csv(euros(1), row(1, dollars, id="sku-b"))
    taken(merchant, data)
    assert prices() == {"wn_1": cheapest}
    count = len(published())
    for night, rate in ((1, "1.02"), (2, "1.40")):
        load_rates(DAYS[night], USD=rate)
        assert counts(taken(merchant, data, hours=24 * night)) == {"unchanged": 2}
    assert prices() == {"wn_1": cheapest}
    assert len(published()) == count


def test_a_price_in_yen_beyond_what_a_dollar_price_can_be_is_taken(merchant):
    load_rates(DAYS[0], USD="1.10", JPY="160")
    shelf(1)
    taken(merchant, csv(row(1, "200000000", currency="JPY")))
    assert Offer.objects.get().native_price == Decimal("200000000.00")
    assert prices() == {"wn_1": "1375000.00"}
