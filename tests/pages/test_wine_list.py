"""The list of wines: search, pages, best prices, and what it answers to nonsense."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from pricing.models import Wine
from tests.cast import merchant, wine
from tests.pages.cellar import asked, offered
from tests.pages.html import Page

CountQueries = Callable[..., Any]


def words(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return Page(response.content.decode()).words.replace("\u00a0", " ")


@pytest.mark.usefixtures("cellar")
def test_each_wine_shows_its_best_price_from_whom_and_the_change_in_a_week(stranger: Client) -> None:
    seen = words(stranger, "/")
    assert "Ch. Montrose 2016 Château Montrose · Saint-Estèphe, France · 75 cl $160.00 Merchant X seen today" in seen
    # A week ago the best was La Cave du Pont's 168.00, not Merchant X's 171.00 nor the late 9.00.
    assert "down $8.00 · 5 % in a week" in seen
    assert "Bandol Rosé 2022 Domaine Tempier · Provence, France · 75 cl Nobody offers it now" in seen


@pytest.mark.django_db
def test_a_wine_first_offered_this_week_has_no_change(stranger: Client) -> None:
    offered("50.00", days=2, by=merchant(), of=wine())
    assert "not offered a week before" in words(stranger, "/")


@pytest.mark.django_db
def test_a_price_that_stands_since_before_the_week_is_unchanged_even_before_its_history_is_written(
    stranger: Client,
) -> None:
    offered("50.00", days=9, by=merchant(), of=wine())
    wine().history.all().delete()
    assert "unchanged in a week" in words(stranger, "/")


@pytest.mark.django_db
def test_a_dearer_price_is_said_to_be_up(stranger: Client) -> None:
    asked("100.00", days=20, by=merchant(), of=wine())
    offered("100.30", days=1, by=merchant(), of=wine())
    assert "up $0.30 · under 1 % in a week" in words(stranger, "/")


@pytest.mark.parametrize(
    "search",
    [
        *(
            "montrose",
            "MONTROSE",
            "chateau montrose",
            "Château",
            "saint-estephe",
            "saint estèphe",
            "2016",
            "ch. 2016 france",
        ),
        *("mont estephe 16", "  montrose  ", "montrose-2016"),
    ],
)
@pytest.mark.usefixtures("cellar")
def test_every_word_may_be_in_name_producer_region_or_vintage_without_its_accents(
    stranger: Client, search: str
) -> None:
    response = stranger.get("/", {"q": search})
    assert [row.wine.pk for row in response.context["wines"]] == ["wn_4417"]


@pytest.mark.parametrize("search", ["montrose 2015", "%", "_", "\\", "montrose%", "' OR 1=1--", "\ufffd", "<script>"])
@pytest.mark.usefixtures("cellar")
def test_a_search_that_finds_nothing_says_what_to_do(stranger: Client, search: str) -> None:
    response = stranger.get("/", {"q": search})
    page = Page(response.content.decode())
    assert response.context["wines"] == []
    assert "Try fewer words" in page.words
    assert page.all("input")[0]["value"] == search


@pytest.mark.django_db
def test_a_search_may_be_long_and_of_odd_letters(stranger: Client) -> None:
    wine("7", name="Œil de Perdrix", producer="Weißer’s Łódź", vintage=None)
    for search in ("oeil weisser's lodz nv", "x" * 5_000, "mot " * 5_000, "́́", "ﬁ", "\u202e", "🍷"):
        assert stranger.get("/", {"q": search}).status_code == 200
    assert [row.wine.pk for row in stranger.get("/", {"q": "oeil weisser's lodz nv"}).context["wines"]] == ["wn_7"]


@pytest.mark.django_db
def test_retired_wines_are_not_listed(stranger: Client) -> None:
    wine("7", retired_at=timezone.now())
    assert stranger.get("/").context["wines"] == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "status"),
    [
        *[("q=%00", 400), ("q=a%00b", 400), ("q=%ff", 200), ("q=%ff%fe%80", 200), ("q=", 200)],
        *[(f"page={page}", 200) for page in ("-1", "0", "99999999999999999999", "abc", "", "1.5", "%00", "9" * 5_000)],
        ("&".join(f"p{n}=1" for n in range(1_001)), 400),
        ("&".join(f"p{n}=1" for n in range(1_000)), 200),
    ],
)
def test_nonsense_in_the_query_is_refused_or_survived(stranger: Client, query: str, status: int) -> None:
    response = stranger.get(f"/?{query}")
    assert response.status_code == status
    if status == 400:
        assert "Nothing was changed" in response.content.decode()


@pytest.mark.django_db
def test_a_page_outside_the_list_gives_the_nearest_and_links_keep_the_search(stranger: Client) -> None:
    Wine.objects.bulk_create(
        Wine(id=f"wn_{n}", name=f"Cru {n:02}", producer="P", size_ml=750, colour="red", country="France")
        for n in range(50)
    )
    first, second, last = (stranger.get("/", {"q": "cru", "page": page}).context for page in ("-7", "2", "99"))
    assert [row.wine.name for row in first["wines"]] == [f"Cru {n:02}" for n in range(24)]
    assert [row.wine.name for row in second["wines"]] == [f"Cru {n:02}" for n in range(24, 48)]
    assert [row.wine.name for row in last["wines"]] == ["Cru 48", "Cru 49"]
    page = Page(stranger.get("/", {"q": "cru", "page": "2"}).content.decode())
    links = {link["rel"]: link["href"] for link in page.all("a") if "rel" in link}
    assert links == {"prev": "?q=cru&page=1", "next": "?q=cru&page=3"}


@pytest.mark.django_db
def test_the_list_takes_three_queries_however_many_wines_and_offers(
    stranger: Client, as_alice: Client, django_assert_num_queries: CountQueries
) -> None:
    sellers = [merchant("1", "One"), merchant("2", "Two"), merchant("3", "Three")]
    for number in range(30):
        for seller in sellers:
            offered("20.00", days=number, by=seller, of=wine(str(number)))
    with django_assert_num_queries(3):
        stranger.get("/")
    with django_assert_num_queries(3):
        stranger.get("/?q=montrose&page=2")
    with django_assert_num_queries(3 + 3):  # the session, who it is, what they have not read
        as_alice.get("/")


@pytest.mark.django_db
def test_an_empty_list_takes_one_query(stranger: Client, django_assert_num_queries: CountQueries) -> None:
    with django_assert_num_queries(1):
        assert "There are no wines yet" in words(stranger, "/")


@pytest.mark.usefixtures("cellar")
def test_the_list_is_read_only(stranger: Client) -> None:
    assert stranger.post("/").status_code == 405
