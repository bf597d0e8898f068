"""The list of wines: search, pages, best prices, and what it answers to nonsense."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from pricing.models import Wine
from tests.cast import merchant, wine
from tests.pages.cellar import asked, offered, project
from tests.pages.html import Page

CountQueries = Callable[..., Any]


def words(client: Client, path: str) -> str:
    project()
    response = client.get(path)
    assert response.status_code == 200
    return Page(response.content.decode()).words.replace("\u00a0", " ")


@pytest.mark.usefixtures("cellar")
def test_each_wine_shows_its_best_price_from_whom_and_the_change_in_a_week(stranger: Client) -> None:
    seen = words(stranger, "/wines")
    assert "Ch. Montrose 2016 Château Montrose · Saint-Estèphe, France · 75 cl $160.00 Merchant X seen today" in seen
    # A week ago the best was La Cave du Pont's 168.00, not Merchant X's 171.00 nor the late 9.00.
    assert "down $8.00 · 5 % in a week" in seen
    assert "Bandol Rosé 2022 Domaine Tempier · Provence, France · 75 cl Nobody offers it now" in seen


@pytest.mark.django_db
def test_a_wine_first_offered_this_week_has_no_change(stranger: Client) -> None:
    offered("50.00", days=2, by=merchant(), of=wine())
    assert "not offered a week before" in words(stranger, "/wines")


@pytest.mark.django_db
def test_a_price_that_stands_since_before_the_week_is_unchanged_even_before_its_history_is_written(
    stranger: Client,
) -> None:
    offered("50.00", days=9, by=merchant(), of=wine())
    wine().history.all().delete()
    assert "unchanged in a week" in words(stranger, "/wines")


@pytest.mark.django_db
def test_a_dearer_price_is_said_to_be_up(stranger: Client) -> None:
    asked("100.00", days=20, by=merchant(), of=wine())
    offered("100.30", days=1, by=merchant(), of=wine())
    assert "up $0.30 · under 1 % in a week" in words(stranger, "/wines")


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
    response = stranger.get("/wines", {"q": search})
    assert [row.wine.pk for row in response.context["wines"]] == ["wn_4417"]


@pytest.mark.parametrize("search", ["montrose 2015", "%", "_", "\\", "' OR 1=1--", "\ufffd", "<script>"])
@pytest.mark.usefixtures("cellar")
def test_a_search_that_finds_nothing_says_what_to_do(stranger: Client, search: str) -> None:
    response = stranger.get("/wines", {"q": search})
    page = Page(response.content.decode())
    assert response.context["wines"] == []
    assert "Try fewer words" in page.words
    assert page.all("input")[0]["value"] == search


@pytest.mark.django_db
def test_a_search_may_be_long_and_of_odd_letters(stranger: Client) -> None:
    wine("7", name="Œil de Perdrix", producer="Weißer’s Łódź", vintage=None)
    project()
    for search in ("oeil weisser's lodz nv", "x" * 5_000, "mot " * 5_000, "́́", "ﬁ", "\u202e", "🍷"):
        assert stranger.get("/wines", {"q": search}).status_code == 200
    assert [row.wine.pk for row in stranger.get("/wines", {"q": "oeil weisser's lodz nv"}).context["wines"]] == ["wn_7"]


@pytest.mark.django_db
def test_retired_wines_are_not_listed(stranger: Client) -> None:
    wine("7", retired_at=timezone.now())
    assert stranger.get("/wines").context["wines"] == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "status"),
    [
        *[("q=%00", 400), ("q=a%00b", 400), ("q=%ff", 200), ("q=%ff%fe%80", 200), ("q=", 200)],
        *[
            (f"after={after}", 200)
            for after in ("-1~a", "9e99999~a", "0~", "~", "abc", "0~%00", "NaN~x", "9" * 5_000, "0~" + "x" * 5_000)
        ],
        *[
            (f"{name}={value}", 200)
            for name in ("vintage", "low", "high", "colour", "region", "order", "stock")
            for value in ("-1", "1e999999", "NaN", "9" * 50, "x", "%00", "%ff", "'")
        ],
        ("&".join(f"p{n}=1" for n in range(1_001)), 400),
        ("&".join(f"p{n}=1" for n in range(1_000)), 200),
    ],
)
def test_nonsense_in_the_query_is_refused_or_survived(stranger: Client, query: str, status: int) -> None:
    response = stranger.get(f"/wines?{query}")
    assert response.status_code == status
    if status == 400:
        assert "Nothing was changed" in response.content.decode()


# --- A page at a time ------------------------------------------------------------------------------------------


def crus(count: int) -> None:
    Wine.objects.bulk_create(
        Wine(id=f"wn_{n}", name=f"Cru {n % 30:02}", producer="P", size_ml=750, colour="red", country="France")
        for n in range(count)
    )


def walked(client: Client, **asked: str) -> list[list[str]]:
    """Every page's wines, by the links that lead from one to the next."""
    pages, path = [], "/wines?" + urlencode(asked)
    while path:
        response = client.get(path)
        pages.append([row.wine.pk for row in response.context["wines"]])
        links = {link["rel"]: link["href"] for link in Page(response.content.decode()).all("a") if "rel" in link}
        path = f"/wines{links['next']}" if "next" in links else ""
    return pages


@pytest.mark.django_db
@pytest.mark.parametrize(
    "asked", [{}, {"q": "cru"}, {"q": "cru", "order": "name"}, {"order": "price"}, {"region": "fr"}]
)
def test_page_after_page_has_every_wine_once_in_one_order(stranger: Client, asked: dict[str, str]) -> None:
    crus(50)
    for number in range(0, 50, 3):
        offered(str(10 + number % 4), days=1, by=merchant(), of=Wine(id=f"wn_{number}"))
    project()
    pages = walked(stranger, **asked)
    assert [len(page) for page in pages] == [24, 24, 2]
    found = [wine_id for page in pages for wine_id in page]
    assert sorted(found) == sorted(f"wn_{n}" for n in range(50))
    if asked.get("order") == "price":
        prices = [Wine.objects.get(pk=wine_id).document.best_usd for wine_id in found[:17]]
        assert prices == sorted(prices)
    if asked == {"q": "cru"}:
        assert {int(wine_id[3:]) % 3 for wine_id in found[:17]} == {0}, "what one can buy comes first"


@pytest.mark.django_db
def test_a_wine_that_comes_meanwhile_shifts_no_page(stranger: Client) -> None:
    crus(50)
    project()
    first = stranger.get("/wines").context["found"]
    before = [row.wine.pk for row in stranger.get("/wines", {"after": first.after}).context["wines"]]
    wine("new", name="A Cru before them all")
    project()
    assert [row.wine.pk for row in stranger.get("/wines", {"after": first.after}).context["wines"]] == before


@pytest.mark.django_db
def test_more_than_a_thousand_are_not_counted(stranger: Client) -> None:
    crus(1_001)
    assert "More than 1000 wines, each" in words(stranger, "/wines")


@pytest.mark.django_db
def test_the_list_takes_four_queries_however_many_wines_and_offers(
    stranger: Client, as_alice: Client, django_assert_num_queries: CountQueries
) -> None:
    sellers = [merchant("1", "One"), merchant("2", "Two"), merchant("3", "Three")]
    for number in range(30):
        for seller in sellers:
            offered("20.00", days=number, by=seller, of=wine(str(number)))
    project()
    with django_assert_num_queries(4):
        stranger.get("/wines")
    with django_assert_num_queries(4):
        stranger.get("/wines?q=montrose&order=price&stock=on&low=1&high=90&vintage=2016&colour=red&region=france")
    with django_assert_num_queries(4 + 2):  # the session and who it is
        as_alice.get("/wines")


@pytest.mark.django_db
def test_an_empty_list_takes_two_queries(stranger: Client, django_assert_num_queries: CountQueries) -> None:
    with django_assert_num_queries(2):
        response = stranger.get("/wines")
    assert "There are no wines yet" in Page(response.content.decode()).words


# --- What is chosen --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("cellar")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("vintage=2016", ["wn_4417"]),
        ("vintage=1999", []),
        ("colour=red", ["wn_2", "wn_4417"]),
        ("colour=white", []),
        ("region=saint-estephe", ["wn_4417"]),
        ("region=provence+france", ["wn_2"]),
        ("region=montrose", []),
        ("stock=on", ["wn_4417"]),
        ("low=160", ["wn_4417"]),
        ("low=160.01", []),
        ("high=160", ["wn_4417"]),
        ("high=159.99", []),
        ("low=1&high=900&q=bandol", []),
    ],
)
def test_a_filter_leaves_what_fits(stranger: Client, query: str, found: list[str]) -> None:
    assert [row.wine.pk for row in stranger.get(f"/wines?{query}").context["wines"]] == found


@pytest.mark.usefixtures("cellar")
def test_a_filter_that_cannot_be_read_is_named_kept_and_not_applied(stranger: Client) -> None:
    response = stranger.get("/wines?vintage=recent&low=9&high=3&colour=blue")
    page = Page(response.content.decode())
    assert len(response.context["wines"]) == 2
    for error in (
        "Enter a whole number.",
        "This is below the lowest price.",
        "blue is not one of the available choices",
    ):
        assert error in page.words
    assert next(field["value"] for field in page.all("input") if field.get("name") == "vintage") == "recent"


# --- Misspellings and ranking -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("cellar")
@pytest.mark.parametrize("typed", ["montrse", "monrtose", "mntrose", "Monttrose 2016", "montrosse estephhe"])
def test_a_misspelt_word_finds_what_was_meant_and_says_so(stranger: Client, typed: str) -> None:
    response = stranger.get("/wines", {"q": typed})
    assert [row.wine.pk for row in response.context["wines"]] == ["wn_4417"]
    seen = Page(response.content.decode()).words
    assert f"No wine has “{typed}”. Did you mean montrose" in seen


@pytest.mark.usefixtures("cellar")
@pytest.mark.parametrize("typed", ["mxxtrxse", "zzzz", "montrose bandol", "1916"])
def test_what_is_no_slip_is_not_guessed_at(stranger: Client, typed: str) -> None:
    assert stranger.get("/wines", {"q": typed}).context["wines"] == []


@pytest.mark.django_db
def test_a_wine_named_so_comes_before_one_whose_name_begins_so_and_one_made_or_grown_so(stranger: Client) -> None:
    wine("1", name="Alpha", producer="Palmer")
    wine("2", name="Palmeraie", producer="X")
    wine("3", name="Zeta Palmer", producer="X")
    wine("4", name="Beta", producer="X", region="Palmer")
    project()
    found = [row.wine.pk for row in stranger.get("/wines?q=palmer").context["wines"]]
    assert found == ["wn_3", "wn_2", "wn_1", "wn_4"]


@pytest.mark.django_db
@pytest.mark.parametrize("typed", ["chateau", "ch", "st julien", "saint julien", "'98", "98"])
def test_what_is_written_short_is_found_in_full_and_the_other_way(stranger: Client, typed: str) -> None:
    wine("1", name="Ch. Talbot", producer="Talbot", region="St. Julien", vintage=1998)
    project()
    assert [row.wine.pk for row in stranger.get("/wines", {"q": typed}).context["wines"]] == ["wn_1"]


@pytest.mark.usefixtures("cellar")
def test_the_list_is_read_only(stranger: Client) -> None:
    assert stranger.post("/wines").status_code == 405
