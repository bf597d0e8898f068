"""The documents that are searched: kept by their subscription, and made again."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from jobs.worker import drain
from pricing import availability, search_index, search_text, wines
from pricing.models import SearchWord, Wine, WineDocument
from pricing.search import Query, find
from tests.cast import NOW, merchant, price, wine, with_app
from tests.pricing.observed import received
from winecellar.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def described(one: Wine) -> None:
    with transaction.atomic():
        wines.describe(wines=[one], now=NOW)


def documents() -> list[tuple[str, int, str]]:
    rows = WineDocument.objects.order_by("pk").values_list("pk", "offers", "best_usd")
    return [(wine_id, offers, str(best)) for wine_id, offers, best in rows]


def test_a_wine_is_found_once_it_is_described_and_by_its_new_name_once_that_changed() -> None:
    one = wine()
    assert find(Query("montrose")).wine_ids == []
    described(one)
    drain(["search-index"])
    assert find(Query("montrose")).wine_ids == ["wn_4417"]
    Wine.objects.filter(pk=one.pk).update(name="Ch. Meyney", producer="Meyney")
    described(one)
    drain(["search-index"])
    assert find(Query("meyney")).wine_ids == ["wn_4417"]
    assert find(Query("2016 estephe meyney")).count == 1
    assert find(Query("montrose")).wine_ids == []


def test_a_retired_wine_is_found_no_longer() -> None:
    described(wine())
    drain(["search-index"])
    Wine.objects.update(retired_at=timezone.now())
    described(wine())
    drain(["search-index"])
    assert documents() == []


def test_prices_and_ends_of_offers_are_what_the_offers_say_whatever_comes_in_what_order() -> None:
    first = price("189.00")
    price("150.00", at=merchant("2", "Another"), minutes=1)
    drain(["search-index"])
    assert documents() == [("wn_4417", 2, "150.00")]  # and it is searched, though nobody described it
    with transaction.atomic():
        search_index.index([received(first.as_message().body)])
    assert documents() == [("wn_4417", 2, "150.00")]
    for number, left in (("2", [("wn_4417", 1, "189.00")]), ("082", [("wn_4417", 0, "None")])):
        availability.withdraw(merchant=merchant(number), wine_ids=["wn_4417"], at=timezone.now(), why="gone", now=NOW)
        drain(["search-index"])
        assert documents() == left


def test_all_is_made_again_and_words_that_no_wine_has_are_forgotten() -> None:
    price("189.00")
    price("20.00", of=wine("9", name="Bandol"))
    Wine.objects.filter(pk="wn_9").update(retired_at=timezone.now())
    SearchWord.objects.create(word="nowhere", parts=search_text.parts("nowhere"))
    for _ in range(2):
        call_command("rebuild", "search-index", stdout=StringIO(), stderr=StringIO())
        assert documents() == [("wn_4417", 1, "189.00")]
        words = set(SearchWord.objects.values_list("word", flat=True))
        assert "montrose" in words
        assert not words & {"nowhere", "bandol"}


def test_entering_and_changing_a_wine_in_the_admin_is_told(admin_client: Client) -> None:
    with_app(User.objects.get(is_superuser=True))
    facts = {"name": "Ch. Figeac", "producer": "Figeac", "size_ml": 750, "colour": "red", "country": "France"}
    assert admin_client.post("/admin/pricing/wine/add/", {"id": "wn_77", **facts}).status_code == 302
    drain(["search-index"])
    assert find(Query("figeac")).count == 1


def test_pages_go_on_from_those_named_so_to_those_named_like_it_to_those_made_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pricing.search.PAGE_SIZE", 1)
    names = {"1": ("Mont", "Q"), "2": ("A Mont", "Q"), "3": ("Montrose", "Q"), "4": ("Talbot", "Mont")}
    for number, (name, producer) in names.items():
        described(wine(number, name=name, producer=producer, region="R"))
    price("20.00", of=Wine.objects.get(pk="wn_1"))
    drain(["search-index"])
    found, after = [], ""
    for _ in names:
        page = find(Query("mont"), after=after)
        found += page.wine_ids
        after = page.after
    assert found == ["wn_1", "wn_2", "wn_3", "wn_4"], "what can be bought before what cannot, whatever its name"
    assert after == ""


@pytest.mark.parametrize("typed", ["montrse", "mntroze", "motnrsoe"])
def test_one_slip_and_two_are_mended(typed: str) -> None:
    described(wine())
    drain(["search-index"])
    found = find(Query(typed))
    assert (found.meant, found.wine_ids) == ("montrose", ["wn_4417"])


@pytest.mark.parametrize(("typed", "near"), [("montrse", "montrose"), ("kurg", "krug"), ("palmre", "palmer")])
def test_a_slip_of_one_letter_or_two_that_changed_places_shares_a_part(typed: str, near: str) -> None:
    assert set(search_text.parts(typed)) & set(search_text.parts(near))


def test_what_is_typed_never_becomes_an_operator() -> None:
    described(wine())
    drain(["search-index"])
    for typed in ("'", "\\", "a' | 'b", "!montrose", "(", ":*", "montrose & !2016", "<->", "\u2019\u2018", "'':A"):
        find(Query(typed, region=typed))
    assert search_text.query(search_text.searched("mont' | !(x:*")) == "'mont':* & 'x':"
