"""A catalogue file is taken: the differences alone, each row counted once."""

from decimal import Decimal

import pytest

from pricing import listings
from pricing.catalogues import refresh, report
from pricing.matching import Ask, read_listing
from pricing.models import CatalogueFile, CatalogueRemark, HeldPrice, Listing, Offer, Wine
from pricing.services import record_observations
from tests import cast
from tests.catalogues.refreshing import at, counts, csv, prices, row, shelf, stages, taken
from tests.pricing.observed import published, seen

pytestmark = pytest.mark.django_db(transaction=True)


def shop_says(merchant, n, price, *, hours, title=None):
    """A webhook of the merchant's shop about listing n."""
    listed = read_listing(title or f"Cuvée {n}", size="75cl", vintage="2019")
    ask = Ask(f"sku-{n}", listed, Decimal(price), "USD", at(hours))
    [result] = listings.record(merchant=merchant, asks=[ask], attributes={}, now=at(hours))
    return result


def test_a_first_file_is_taken_whole(merchant):
    shelf(1)
    file = taken(merchant, csv(row(1, "189.00"), "sku-2,Corkscrew,,,9.00,USD"))
    assert (file.status, file.error, counts(file)) == ("done", "", {"changed": 1, "unmatched": 1})
    assert prices() == {"wn_1": "189.00"}
    [message] = published()
    assert message["attributes"] == {"catalogue_file": str(file.pk), "listing": "sku-1"}
    assert stages() == []


def test_the_same_file_again_publishes_nothing_and_confirms_every_price(merchant):
    shelf(3)
    data = csv(row(1), row(2), row(3))
    taken(merchant, data)
    before = published(), list(Listing.objects.order_by("pk").values())
    file = taken(merchant, data, hours=24)
    assert counts(file) == {"unchanged": 3}
    assert (published(), list(Listing.objects.order_by("pk").values())) == before
    assert set(Offer.objects.values_list("occurred_at", "seen_at")) == {(at(0), at(24))}


def test_only_what_differs_is_published(merchant):
    shelf(3)
    taken(merchant, csv(row(1), row(2), row(3)))
    file = taken(merchant, csv(row(1), row(2, 18), row(3)), hours=24)
    assert counts(file) == {"changed": 1, "unchanged": 2}
    assert [message["key"] for message in published()][3:] == ["wn_2"]
    assert prices() == {"wn_1": "20.00", "wn_2": "18.00", "wn_3": "20.00"}


def test_every_row_is_counted_once_for_what_became_of_it(merchant):
    shelf(6)
    shelf(1, 10)
    taken(merchant, csv(*(row(n) for n in range(1, 6))))
    shop_says(merchant, 5, "19.00", hours=30)
    file = taken(
        merchant,
        csv(
            row(1),
            row(2, 18),
            row(3, 1),
            row(4, "twenty"),
            row(5),
            row(6, currency="EUR"),  # nobody has loaded a rate
            "sku-7,Corkscrew,,,9.00,USD",
            row(8, ""),
            "sku-9,Short",
            row(10, ""),
        ),
        hours=24,
    )
    expected = {"unchanged": 1, "changed": 1, "held": 2, "rejected": 1, "stale": 1, "kept": 1, "unmatched": 2}
    assert counts(file) == {**expected, "unread": 1}
    assert (file.rows, file.seen) == (9, 10)
    told = CatalogueRemark.objects.order_by("line").values_list("kind", "line", "field", "source_id")
    assert list(told[:1]) == [("rejected", 5, "price", "sku-4")]
    assert [each[:2] for each in told] == [("rejected", 5), ("unread", 10)]
    assert dict(HeldPrice.objects.values_list("wine_id", "cause")) == {"wn_3": "jump", "wn_6": "no_rate"}


def test_a_row_that_was_rejected_leaves_its_price_and_is_looked_at_again_the_next_night(merchant):
    shelf(1)
    taken(merchant, csv(row(1)))
    for night in (1, 2):
        assert counts(taken(merchant, csv(row(1, "twenty")), hours=24 * night)) == {"rejected": 1}
    assert prices() == {"wn_1": "20.00"}
    assert Offer.objects.get().seen_at == at(0)
    assert counts(taken(merchant, csv(row(1)), hours=72)) == {"unchanged": 1}
    assert Offer.objects.get().seen_at == at(72)


def test_a_held_price_is_asked_about_once_and_counted_each_night(merchant):
    shelf(1)
    taken(merchant, csv(row(1)))
    for night in (1, 2):
        assert counts(taken(merchant, csv(row(1, 2000)), hours=24 * night)) == {"held": 1}
    assert HeldPrice.objects.count() == 1
    assert prices() == {"wn_1": "20.00"}


def test_a_row_that_is_described_anew_is_matched_anew(merchant):
    shelf(2)
    taken(merchant, csv(row(1)))
    file = taken(merchant, csv(row(1, title="Cuvée 2")), hours=24)
    assert counts(file) == {"changed": 1}
    assert Listing.objects.get().wine_id == "wn_2"


def test_a_listing_that_waits_is_found_when_its_wine_comes(merchant):
    data = csv(row(1, 20), "sku-2,Corkscrew,,,9.00,USD")
    assert counts(taken(merchant, data)) == {"unmatched": 2}
    assert counts(taken(merchant, data, hours=24)) == {"unmatched": 2}
    shelf(1)
    assert counts(taken(merchant, data, hours=48)) == {"changed": 1, "unmatched": 1}
    assert prices() == {"wn_1": "20.00"}


def test_what_a_person_matched_stays_matched_while_nothing_else_is_said(merchant):
    cast.wine()
    data = csv("sku-1,Montrose rouge,75cl,2016,189.00,USD")
    taken(merchant, data)
    listings.match(listing_id=Listing.objects.get().pk, wine_id="wn_4417", by="7", now=at(1))
    assert counts(taken(merchant, data, hours=24)) == {"unchanged": 1}
    later = csv("sku-1,Montrose rouge,75cl,2016,154.00,USD")
    assert counts(taken(merchant, later, hours=48)) == {"changed": 1}
    assert (Listing.objects.get().matched_by, prices()) == ("person", {"wn_4417": "154.00"})


def test_other_settings_read_every_row_anew(merchant):
    shelf(2)
    data = csv(row(1, 2000), row(2, 2100))
    taken(merchant, data)
    file = taken(merchant, data, hours=24, unit="cents")
    assert counts(file) == {"held": 2}  # a hundredth of yesterday's: read anew, and not believed


@pytest.mark.parametrize("hours", [23, 25])
def test_a_shops_word_and_a_files_are_taken_by_their_times(merchant, hours):
    """The shop says 18 an hour before the file that still says 20, or an hour after it."""
    shelf(1)
    data = csv(row(1))
    taken(merchant, data)
    shop_says(merchant, 1, "18.00", hours=hours)
    file = taken(merchant, data, hours=24)
    assert counts(file) == ({"changed": 1} if hours == 23 else {"stale": 1})
    assert prices() == {"wn_1": "20.00" if hours == 23 else "18.00"}


def test_a_price_that_came_past_the_listing_is_seen(merchant):
    shelf(1)
    data = csv(row(1))
    taken(merchant, data)
    record_observations(merchant=merchant, observations=[seen("18.00", at(12), "wn_1")], attributes={}, now=at(12))
    assert counts(taken(merchant, data, hours=24)) == {"changed": 1}
    assert prices() == {"wn_1": "20.00"}


def test_a_late_word_of_a_shop_does_not_undo_what_a_file_has_confirmed_without_writing_it(merchant):
    data = csv("sku-1,Cuvée 1,75cl,2019,20.00,USD")
    for hours in (0, 24):
        taken(merchant, data, hours=hours)
    shop_says(merchant, 1, "18.00", hours=12)
    assert Listing.objects.get().price == 20


def test_of_two_listings_of_one_wine_the_cheaper_counts_whatever_the_night(merchant):
    shelf(1)
    data = csv(row(1, 24), row(1, 20, id="sku-b"), row(1, 22, id="sku-c"))
    for night in range(3):
        taken(merchant, data, hours=24 * night)
        assert prices() == {"wn_1": "20.00"}
    assert len(published()) == 1
    dearer = csv(row(1, 24), row(1, 23, id="sku-b"), row(1, 22, id="sku-c"))
    taken(merchant, dearer, hours=72)
    assert prices() == {"wn_1": "22.00"}
    assert len(published()) == 2


def test_a_retired_wine_and_a_listing_set_aside_are_kept(merchant):
    shelf(2)
    data = csv(row(1), row(2), "sku-3,Corkscrew,,,9.00,USD")
    taken(merchant, data)
    Wine.objects.filter(pk="wn_2").update(retired_at=at(1))
    listings.set_aside(listing_id=Listing.objects.get(source_id="sku-3").pk, now=at(1))
    file = taken(merchant, csv(row(1), row(2, 19), "sku-3,Corkscrew,,,8.00,USD"), hours=24)
    assert counts(file) == {"unchanged": 1, "kept": 2}
    assert counts(taken(merchant, csv(row(1), row(2, 19), "sku-3,Corkscrew,,,8.00,USD"), hours=48))["kept"] >= 1


def test_files_of_two_merchants_have_nothing_to_do_with_each_other(merchant):
    shelf(1)
    other = cast.merchant("083", "Merchant Y")
    taken(merchant, csv(row(1)))
    assert counts(taken(other, csv(row(1, 18)))) == {"changed": 1}
    assert counts(taken(merchant, csv(row(1)), hours=24)) == {"unchanged": 1}
    assert Listing.objects.count() == 2


def test_a_thousand_rejected_rows_and_more_are_counted_and_a_thousand_are_named(merchant, settings):
    settings.CATALOGUE_CHUNK = 300
    shelf(1)
    bad = [f"sku-{n},Cuvée {n},75cl,2019,a lot,USD" for n in range(2, 1302)]
    file = taken(merchant, csv(row(1), *bad))
    assert counts(file) == {"changed": 1, "rejected": 1300}
    lines = CatalogueRemark.objects.order_by("line").values_list("line", flat=True)
    assert list(lines) == list(range(3, 1003))


def test_prices_that_name_no_currency_count_as_the_merchants_and_are_told_of(merchant):
    shelf(3)
    merchant.currency = "USD"
    merchant.save()
    file = taken(merchant, csv(row(1, currency=""), row(2, "$20", currency=""), row(3)))
    assert counts(file) == {"changed": 3}
    assert report.notes(file) == ["Prices without a currency: 1, taken as USD."]


def test_chunks_and_windows_of_any_size_come_to_the_same(merchant, settings):
    shelf(7)
    settings.CATALOGUE_WINDOW, settings.CATALOGUE_CHUNK = 3, 2
    first = taken(merchant, csv(*(row(n) for n in range(1, 8))))
    assert counts(first) == {"changed": 7}
    changed = csv(*(row(n, 20 - n % 2) for n in range(1, 8)))
    assert counts(taken(merchant, changed, hours=24)) == {"changed": 4, "unchanged": 3}
    assert len(published()) == 11


def test_a_file_that_is_finished_is_not_taken_again(merchant):
    shelf(1)
    file = taken(merchant, csv(row(1)))
    assert refresh.run(file_id=file.pk, now=at(1)) == refresh.Turn(more=False)
    assert len(published()) == 1
    assert CatalogueFile.objects.get().finished_at == at(0)
