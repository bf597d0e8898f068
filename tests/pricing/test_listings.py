"""Listings in the database: their prices are recorded, or kept until somebody has matched them."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pricing import listing_wines, listings
from pricing.listings import Kept, MismatchError
from pricing.matching import Ask, read_listing
from pricing.models import HeldPrice, Listing, Offer, Wine
from pricing.rules import Verdict
from tests import cast
from tests.cast import NOW
from tests.pricing.observed import published

pytestmark = pytest.mark.django_db(transaction=True)
GOOD, VAGUE = "Ch. Montrose 2016 75cl", "Montrose rouge 2016 75cl"


def ask(title=GOOD, price="189.00", *, id_="v1", currency="USD", minutes=0, in_stock=True, **fields):
    return Ask(
        source_id=id_,
        listed=read_listing(title, **fields),
        price=None if price is None else Decimal(price),
        currency=currency,
        occurred_at=NOW + timedelta(minutes=minutes),
        in_stock=in_stock,
    )


def take(merchant, *asks):
    return listings.record(merchant=merchant, asks=asks, attributes={"request_id": "req_1"}, now=NOW)


def settle(wine_id="wn_4417", by="7"):
    return listings.match(listing_id=Listing.objects.get().pk, wine_id=wine_id, by=by, now=NOW)


def test_a_listing_that_is_certain_is_recorded(merchant, wine):
    [result] = take(merchant, ask())
    assert (result.source_id, result.kept, result.outcome.verdict) == ("v1", None, Verdict.APPLIED)
    [message] = published()
    assert message["event_id"] == result.outcome.event_id
    assert message["attributes"]["listing"] == "v1"
    listing = Listing.objects.get()
    assert (listing.wine, listing.matched_by, listing.price) == (wine, "name", Decimal("189.00"))


def test_its_next_price_is_recorded_too_and_the_same_one_changes_nothing(merchant, wine):
    take(merchant, ask())
    [again] = take(merchant, ask(minutes=1))
    [later] = take(merchant, ask(price="154.00", minutes=2))
    assert (again.outcome.verdict, later.outcome.verdict) == (Verdict.UNCHANGED, Verdict.APPLIED)
    assert Offer.objects.get().price_usd == 154
    assert Listing.objects.get().price == 154


def test_what_is_not_certain_waits_with_its_last_price(merchant, wine):
    assert [result.kept for result in take(merchant, ask(VAGUE))] == [Kept.UNMATCHED]
    take(merchant, ask(VAGUE, "180.00", minutes=1))
    take(merchant, ask(VAGUE, "170.00", minutes=-5))  # late: the newest counts
    listing = Listing.objects.get()
    assert (listing.wine, listing.price, listing.occurred_at) == (None, 180, NOW + timedelta(minutes=1))
    assert published() == []


def test_a_person_matches_it_and_its_price_is_recorded(merchant, wine):
    take(merchant, ask(VAGUE, "180.00"))
    result = settle()
    assert result.outcome.verdict is Verdict.APPLIED
    [message] = published()
    assert (str(message["body"]["new_price_usd"]), message["body"]["merchant_id"]) == ("180.00", "mch_082")
    assert message["attributes"] == {"matched_by": "7", "listing": "v1"}
    assert Offer.objects.get().occurred_at == NOW


def test_and_that_is_once_and_for_all(merchant, wine):
    take(merchant, ask(VAGUE, "180.00"))
    settle()
    [later] = take(merchant, ask(VAGUE, "170.00", minutes=1))
    assert later.outcome.verdict is Verdict.APPLIED
    [renamed] = take(merchant, ask("Montrose rouge, superb! 2016 75cl", "160.00", minutes=2))
    assert renamed.outcome.verdict is Verdict.APPLIED
    assert Listing.objects.get().matched_by == "person"


@pytest.mark.parametrize(
    "title", ["Montrose rouge 2016 6x75cl", "Montrose rouge 2016 Magnum", "Montrose rouge 2015 75cl"]
)
def test_until_the_listing_says_something_else(merchant, wine, title):
    take(merchant, ask(VAGUE, "180.00"))
    settle()
    [result] = take(merchant, ask(title, "900.00", minutes=1))
    assert result.kept is Kept.UNMATCHED
    assert Listing.objects.get().wine is None
    assert Offer.objects.get().price_usd == 180
    assert not HeldPrice.objects.exists()


def test_an_older_ask_that_called_it_something_else_is_not_this_wines_price(merchant, wine):
    take(merchant, ask(minutes=1))
    [older] = take(merchant, ask("Ch. Montrose 2016 6x75cl", "185.00"))
    assert older.kept is Kept.UNMATCHED
    assert Listing.objects.get().title == GOOD
    assert len(published()) == 1


def test_an_older_price_of_a_matched_listing_goes_into_the_history(merchant, wine):
    take(merchant, ask())
    [older] = take(merchant, ask(price="185.00", minutes=-1))
    assert older.outcome.verdict is Verdict.STALE


@pytest.mark.parametrize(
    ("wine_id", "title", "why"),
    [
        ("wn_1", VAGUE, "do not list"),
        ("wn_4418", VAGUE, "do not list"),
        ("wn_4417", "Montrose rouge 2016 6x75cl", "pack of 6"),
        ("wn_4417", "Montrose rouge 2016 Magnum", "1500 ml"),
        ("wn_4417", "Montrose rouge 2015 75cl", "vintage 2015"),
    ],
)
def test_a_person_cannot_match_what_speaks_against_it(merchant, wine, wine_id, title, why):
    cast.wine("4418", retired_at=NOW)
    take(merchant, ask(title))
    with pytest.raises(MismatchError, match=why):
        settle(wine_id)
    assert Listing.objects.get().wine is None
    assert published() == []


def test_a_person_may_decide_what_is_unclear(merchant, wine):
    take(merchant, ask("Montrose 2016 OWC", "180.00"))
    assert "case" in Listing.objects.get().unclear
    assert settle().outcome.verdict is Verdict.APPLIED
    [later] = take(merchant, ask("Montrose 2016 OWC", "170.00", minutes=1))
    assert later.outcome.verdict is Verdict.APPLIED


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"price": None}, Kept.NO_PRICE),
        ({"in_stock": False}, Kept.OUT_OF_STOCK),
        ({"currency": ""}, Kept.NO_CURRENCY),
        ({"currency": "XXX"}, Kept.NO_CURRENCY),
    ],
)
def test_without_a_price_in_known_money_nothing_is_recorded_and_nothing_is_lost(merchant, wine, change, why):
    [result] = take(merchant, ask(**change))
    assert (result.kept, result.outcome) == (why, None)
    listing = Listing.objects.get()
    assert (listing.wine, listing.price) == (wine, Decimal("189.00") if "currency" in change else None)
    assert published() == []
    assert take(merchant, ask(minutes=1))[0].outcome.verdict is Verdict.APPLIED


def test_a_matched_listing_without_a_price_is_matched_all_the_same(merchant, wine):
    take(merchant, ask(VAGUE, None))
    assert settle().kept is Kept.NO_PRICE
    assert take(merchant, ask(VAGUE, minutes=1))[0].outcome.verdict is Verdict.APPLIED


def test_what_was_set_aside_stays_so_until_it_says_something_else(merchant, wine):
    take(merchant, ask("Corkscrew", "9.00"))
    pk = Listing.objects.get().pk
    assert listings.set_aside(listing_id=pk, now=NOW)
    assert not listings.set_aside(listing_id=pk, now=NOW)
    assert [result.kept for result in take(merchant, ask("Corkscrew", "8.00", minutes=1))] == [Kept.SET_ASIDE]
    assert take(merchant, ask(minutes=2))[0].outcome.verdict is Verdict.APPLIED


def test_what_was_set_aside_is_not_matched_behind_a_persons_back(merchant):
    take(merchant, ask())
    listings.set_aside(listing_id=Listing.objects.get().pk, now=NOW)
    cast.wine()
    assert take(merchant, ask(minutes=1))[0].kept is Kept.SET_ASIDE


def test_a_matched_listing_cannot_be_set_aside(merchant, wine):
    take(merchant, ask())
    assert not listings.set_aside(listing_id=Listing.objects.get().pk, now=NOW)
    assert Listing.objects.get().set_aside_at is None


def test_a_wine_that_is_listed_later_is_found_with_the_next_price(merchant):
    assert take(merchant, ask())[0].kept is Kept.UNMATCHED
    cast.wine()
    assert take(merchant, ask(minutes=1))[0].outcome.verdict is Verdict.APPLIED


def test_the_price_of_a_retired_wine_is_kept(merchant, wine):
    take(merchant, ask())
    type(wine).objects.update(retired_at=NOW)
    assert take(merchant, ask(price="154.00", minutes=1))[0].kept is Kept.RETIRED
    assert Listing.objects.get().price == 154
    assert Offer.objects.get().price_usd == 189


def test_the_variants_of_a_product_are_listings_of_their_own(merchant, wine):
    magnum = cast.wine("4418", size_ml=1500)
    results = take(
        merchant,
        ask("Ch. Montrose 2016", "189.00", id_="b", size="75cl"),
        ask("Ch. Montrose 2016", "400.00", id_="a", size="Magnum"),
        ask("Ch. Montrose 2016", "1100.00", id_="c", size="6 x 75cl"),
    )
    assert [(result.source_id, result.kept) for result in results] == [("b", None), ("a", None), ("c", Kept.UNMATCHED)]
    prices = {offer.wine_id: str(offer.price_usd) for offer in Offer.objects.all()}
    assert prices == {wine.pk: "189.00", magnum.pk: "400.00"}


def test_ids_belong_to_their_merchant(merchant, wine):
    other = cast.merchant("083", "Merchant Y")
    take(merchant, ask())
    take(other, ask(price="170.00"))
    assert Listing.objects.count() == Offer.objects.count() == 2


def test_the_merchants_usual_bottle_is_used(merchant, wine):
    merchant.unsaid_size_ml = 750
    assert take(merchant, ask("Ch. Montrose 2016"))[0].outcome.verdict is Verdict.APPLIED


def test_suggestions_are_of_the_said_vintage_and_still_listed(merchant, wine):
    cast.wine("4418", vintage=2015)
    cast.wine("4419", name="La Dame de Montrose", retired_at=NOW)
    take(merchant, ask(VAGUE))
    assert [each.wine_id for each in listing_wines.suggestions(Listing.objects.get())] == [wine.pk]


def test_suggestions_share_any_word_of_name_producer_or_region_and_are_few(merchant, wine):
    for n in range(60):
        cast.wine(f"{n}", name=f"Cuvée {n}", producer="Domaine Essai", region="Saint-Estèphe", vintage=2016)
    cast.wine("far", name="Rioja Alta", producer="Bodega", region="Rioja", vintage=2016)
    take(merchant, ask(VAGUE))
    Listing.objects.update(name="saint estephe montrose", vintage=2016)
    found = [each.wine_id for each in listing_wines.suggestions(Listing.objects.get(), most=100)]
    assert found[0] == wine.pk
    assert len(found) == listing_wines.MOST_RANKED
    assert "wn_far" not in found


def test_suggestions_are_found_by_an_index(merchant, wine):
    take(merchant, ask(VAGUE))
    others = [
        Wine(pk=f"wn_x{n}", name=f"Cuvée {n}", producer=f"Domaine {n}", region=f"Région {n}", vintage=2016)
        for n in range(5_000)
    ]
    Wine.objects.bulk_create(others)
    with CaptureQueriesContext(connection) as queries:
        listing_wines.suggestions(Listing.objects.get())
    with connection.cursor() as cursor:
        cursor.execute("SELECT gin_clean_pending_list('pricing_wine_by_words')")  # as a vacuum would
        cursor.execute("ANALYZE pricing_wine")
        cursor.execute(f"EXPLAIN {queries[-1]['sql']}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "pricing_wine_by_words" in plan, plan
