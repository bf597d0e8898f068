"""What a file no longer has: reported, marked unavailable if the merchant wants that, never because of a bad file."""

from decimal import Decimal

import pytest

from pricing import listings
from pricing.catalogues import lease, refresh, report
from pricing.matching import Ask, read_listing
from pricing.models import CatalogueFile, CatalogueRemark, CatalogueSettings, Listing, Offer
from tests.catalogues.refreshing import at, counts, csv, go_on, prices, received, row, shelf, stages, taken
from tests.pricing.observed import published

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def before(merchant):
    """Ten wines, all in last night's file."""
    shelf(10)
    taken(merchant, csv(*map(row, range(1, 11))))


def named(file):
    return list(CatalogueRemark.objects.filter(file=file, kind="absent").values_list("source_id", flat=True))


def test_absent_listings_are_named_and_stay_as_they_are_unless_the_merchant_wants_otherwise(merchant, before):
    file = taken(merchant, csv(*map(row, range(1, 9))), hours=24)
    assert counts(file) == {"unchanged": 8, "absent": 2}
    assert named(file) == ["sku-10", "sku-9"]
    assert report.notes(file) == ["2 listings of earlier files are not in it. Their prices stay as they were."]
    assert len(prices()) == 10
    assert Offer.objects.get(wine="wn_9").seen_at == at(0)


def test_they_are_marked_unavailable_where_that_is_the_policy(merchant, before):
    file = taken(merchant, csv(*map(row, range(1, 9))), hours=24, absent="withdraw")
    assert counts(file) == {"unchanged": 8, "absent": 2, "withdrawn": 2}
    assert sorted(prices()) == [f"wn_{n}" for n in range(1, 9)]
    assert Listing.objects.get(source_id="sku-9").price is None
    told = [(m["type"], m["key"], m["body"]["why"], m["attributes"]) for m in published()[10:]]
    attributes = {"catalogue_file": str(file.pk)}
    assert told == [
        ("wine.offer_withdrawn", key, "no longer in the catalogue", attributes) for key in ("wn_10", "wn_9")
    ]


def test_and_are_not_named_where_they_are_to_be_kept(merchant, before):
    file = taken(merchant, csv(*map(row, range(1, 9))), hours=24, absent="keep")
    assert (counts(file), named(file)) == ({"unchanged": 8, "absent": 2}, [])


def test_they_are_told_of_once_and_come_back_with_their_price(merchant, before):
    taken(merchant, csv(*map(row, range(1, 9))), hours=24, absent="withdraw")
    assert counts(taken(merchant, csv(*map(row, range(1, 9))), hours=48)) == {"unchanged": 8}
    assert counts(taken(merchant, csv(*map(row, range(1, 10))), hours=72)) == {"unchanged": 8, "changed": 1}
    assert "wn_9" in prices()


def test_a_price_that_a_shop_has_sent_after_the_files_time_survives_it(merchant, before):
    Offer.objects.filter(wine="wn_9").update(seen_at=at(30))
    Listing.objects.filter(source_id="sku-9").update(occurred_at=at(30))
    file = taken(merchant, csv(*map(row, range(1, 9))), hours=24, absent="withdraw")
    assert counts(file) == {"unchanged": 8, "absent": 2, "withdrawn": 1}
    assert "wn_9" in prices()


def test_a_wine_that_another_listing_still_is_is_asked_for_at_that_ones_price(merchant):
    shelf(2)
    taken(merchant, csv(row(1, 20), row(1, 25, id="sku-b"), row(2)), smallest_share=50)
    file = taken(merchant, csv(row(1, 25, id="sku-b"), row(2)), hours=24, absent="withdraw")
    assert counts(file) == {"unchanged": 2, "absent": 1}
    assert prices() == {"wn_1": "25.00", "wn_2": "20.00"}


@pytest.mark.parametrize("hours", [12, 30])
def test_a_wine_that_the_merchants_shop_still_sells_is_asked_for_at_the_shops_price(merchant, before, hours):
    listed = read_listing("Cuvée 9", size="75cl", vintage="2019")
    ask = Ask("shop/9", listed, Decimal("18.00"), "USD", at(hours))
    listings.record(merchant=merchant, asks=[ask], attributes={}, now=at(hours))
    file = taken(merchant, csv(*map(row, range(1, 9))), hours=24, absent="withdraw")
    assert counts(file) == {"unchanged": 8, "absent": 2, "withdrawn": 1}
    assert prices()["wn_9"] == "18.00"
    assert [message["type"] for message in published()[10:]] == ["wine.price_changed", "wine.offer_withdrawn"]


def test_a_shrunken_file_applies_its_prices_and_marks_nothing(merchant, before):
    file = taken(merchant, csv(row(1, 18), *map(row, range(2, 8))), hours=24, absent="withdraw")
    assert file.shrunken
    assert counts(file) == {"changed": 1, "unchanged": 6}
    assert len(prices()) == 10
    assert "far fewer rows" in report.notes(file)[0]
    assert CatalogueSettings.objects.get().rows == 10


def test_and_so_does_the_next_until_a_person_accepts_the_size(merchant, before):
    small = csv(*map(row, range(1, 8)))
    first = taken(merchant, small, hours=24, absent="withdraw")
    assert taken(merchant, small, hours=48).shrunken
    assert refresh.accept_size(file_id=first.pk)
    assert counts(taken(merchant, small, hours=72)) == {"unchanged": 7, "absent": 3, "withdrawn": 3}


@pytest.mark.parametrize(("rows", "shrunken"), [(8, False), (7, True)])
def test_the_threshold_is_a_share_of_the_last_whole_files_rows(merchant, before, rows, shrunken):
    assert taken(merchant, csv(*map(row, range(1, rows + 1))), hours=24, smallest_share=80).shrunken is shrunken


def test_of_a_file_that_is_cut_off_nothing_is_taken(merchant, before):
    whole = csv(*(row(n, 18) for n in range(1, 11)))
    file = taken(merchant, whole[:-8], hours=24, absent="withdraw")
    assert (file.status, counts(file)) == ("refused", {})
    assert file.error.startswith("Line 11: ")
    assert file.error.endswith("Nothing of the file was taken.")
    assert set(prices().values()) == {"20.00"}
    assert stages() == []


def test_unless_the_merchant_wants_the_rows_before_the_fault(merchant, before):
    whole = csv(*(row(n, 18) for n in range(1, 11)))
    file = taken(merchant, whole[:-8], hours=24, absent="withdraw", take_broken=True)
    assert (file.status, file.broken, counts(file)) == ("done", True, {"changed": 9})
    assert "nothing was marked unavailable" in report.notes(file)[0]
    assert len(prices()) == 10
    assert not refresh.accept_size(file_id=file.pk)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (csv(), "no row that can be read"),
        (csv("sku-1,Short"), "no row that can be read"),
        (b"<!doctype html><html><body>Sign in</body></html>", "web page"),
        (csv(row(1, "8.750")), "two ways"),
        (csv("sku-1,Wine,75cl", head="id,title,size"), "price"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_words_and_nothing_is_absent(merchant, before, data, why):
    file = taken(merchant, data, hours=24, absent="withdraw", smallest_share=1)
    assert file.status == "refused"
    assert why in file.error
    assert len(prices()) == 10


def test_a_row_that_cannot_be_read_is_not_absent_when_it_names_itself(merchant, before):
    rows = [*map(row, range(1, 9)), row(9, title="")]
    file = taken(merchant, csv(*rows), hours=24, absent="withdraw")
    assert counts(file) == {"unchanged": 8, "unread": 1, "absent": 1, "withdrawn": 1}
    assert "wn_9" in prices()
    assert "wn_10" not in prices()


def test_a_row_without_a_name_may_be_any_of_the_absent_so_none_is_marked(merchant, before):
    file = taken(merchant, csv(*map(row, range(1, 9)), row(9, id="")), hours=24, absent="withdraw")
    assert (file.nameless, counts(file)) == (1, {"unchanged": 8, "unread": 1, "absent": 2})
    assert named(file) == ["sku-10", "sku-9"]
    assert len(prices()) == 10
    assert "may be among them" in report.notes(file)[0]


def test_an_older_file_goes_into_the_history_and_withdraws_nothing(merchant, before):
    data = csv(row(1, 18), *map(row, range(2, 9)))
    file = taken(merchant, data, hours=-24, absent="withdraw")
    assert (file.late, counts(file)) == (True, {"stale": 1, "unchanged": 7})
    assert len(prices()) == 10
    assert prices()["wn_1"] == "20.00"
    assert published()[-1]["type"] == "wine.late_price_observed"
    assert CatalogueSettings.objects.get().as_of == at(0)


def test_an_older_file_a_second_time_publishes_nothing(merchant, before):
    data = csv(row(1, 18), *map(row, range(2, 9)))
    first = taken(merchant, data, hours=-24)
    count = len(published())
    second = taken(merchant, data, hours=-24)
    assert (second.status, second.error) == (
        "refused",
        f"The same file of the same time was taken as file {first.pk}. Nothing is left to do.",
    )
    assert len(published()) == count


def test_after_an_older_file_the_same_as_before_changes_nothing(merchant, before):
    taken(merchant, csv(row(1, 18), *map(row, range(2, 9))), hours=-24)
    assert counts(taken(merchant, csv(*map(row, range(1, 11))), hours=24)) == {"unchanged": 10}


def test_many_absent_are_left_in_chunks_and_a_crash_of_the_server_between_them_loses_none(merchant, settings):
    from pricing.catalogues import stage
    from pricing.catalogues.ahead import Ahead

    settings.CATALOGUE_CHUNK = 2
    shelf(9)
    taken(merchant, csv(*map(row, range(1, 10))), smallest_share=10)
    file = received(merchant, csv(row(1)), hours=24, absent="withdraw")
    leased, ahead = lease.claim(file_id=file.pk, now=at(24)), Ahead()
    while leased.absent_done < 4:
        refresh.step(leased, ahead, now=at(24))
    ahead.close()
    stage.drop(leased.stage)  # as an unlogged table is lost
    CatalogueFile.objects.update(leased_until=at(-1))
    file = go_on(file, hours=24)
    assert counts(file) == {"unchanged": 1, "absent": 8, "withdrawn": 8}
    assert sorted(named(file)) == [f"sku-{n}" for n in range(2, 10)]
    assert prices() == {"wn_1": "20.00"}
