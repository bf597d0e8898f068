"""A wine's page: the best price, the chart with its table, the offers, and what a target would mean."""

import csv
import io
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.cast import alert, merchant, wine
from tests.cellars.cast import bottle
from tests.cellars.cast import cellar as cellar_of
from tests.pages.cellar import asked, came_back, left, offered, project
from tests.pages.html import Page

MONTROSE = "/wines/wn_4417"
CountQueries = Callable[..., Any]


def page(client: Client, path: str = MONTROSE) -> Page:
    response = client.get(path)
    assert response.status_code == 200
    return Page(response.content.decode())


def words(client: Client, path: str = MONTROSE) -> str:
    return page(client, path).words.replace("\u00a0", " ")


@pytest.mark.usefixtures("cellar")
def test_the_page_reads_in_the_order_of_what_matters(stranger: Client) -> None:
    seen = words(stranger)
    order = [
        "Ch. Montrose 2016",
        "75 cl · Saint-Estèphe, France",
        "Best price now $160.00 at Merchant X, seen today",
        "down $8.00 · 5 % since last week",
        "Watch this wine",
        "The last 90 days",
        "The same as a table",
        "Offers 2 merchants, cheapest first",
        "Facts Producer Château Montrose",
    ]
    places = [seen.find(part) for part in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)


@pytest.mark.usefixtures("cellar")
def test_the_chart_says_in_words_what_it_draws(stranger: Client) -> None:
    text = stranger.get(MONTROSE).content.decode()
    assert "<title id=" in text
    assert "Lowest $149.00 on" in text
    assert "highest $171.00 on" in text
    assert "$9.00" not in text  # it arrived late: nobody could have bought at it
    assert "now $160.00." in text


@pytest.mark.usefixtures("cellar")
def test_the_table_holds_every_step_of_the_chart_newest_first(stranger: Client) -> None:
    rows = stranger.get(MONTROSE).context["rows"]
    seen = [(step.price_usd, name) for step, name in rows]
    assert seen == [
        (Decimal("160.00"), "Merchant X"),
        (Decimal("168.00"), "La Cave du Pont"),
        (Decimal("149.00"), "La Cave du Pont"),
        (Decimal("171.00"), "Merchant X"),
        (Decimal("150.00"), "Merchant X"),
        (Decimal("170.00"), "Merchant X"),
    ]
    table = words(stranger).partition("Best price of")[2]
    places = [table.find(f"{name} ${price}") for price, name in seen]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.django_db
def test_a_long_table_shows_the_latest_and_says_so(stranger: Client) -> None:
    for number in range(130):
        asked(str(100 + number % 2), days=80 - number / 2, by=merchant(), of=wine())
    offered("99.00", days=1, by=merchant(), of=wine())
    seen = words(stranger)
    assert "the latest 100 of 131 changes in the last 90 days" in seen
    assert len(stranger.get(MONTROSE).context["rows"]) == 100


@pytest.mark.usefixtures("cellar")
def test_without_a_target_the_page_offers_some_to_start_from(stranger: Client) -> None:
    links = [link["href"] for link in page(stranger).all("a") if link["href"].startswith("?target=")]
    assert links == ["?target=152.00#watch", "?target=149.00#watch", "?target=144.00#watch"]
    seen = words(stranger)
    assert "$152.00 5 % below today; seen twice in the last 90 days." in seen
    assert "$144.00 10 % below today; not seen in the last 90 days." in seen
    assert "Best now $160.00 90-day low $149.00 90-day high $171.00" in seen


@pytest.mark.usefixtures("cellar")
@pytest.mark.parametrize(
    ("query", "meaning"),
    [
        ("target=150", "$150.00 6 % below today; seen twice in a year."),
        ("target=%24149.00", "$149.00 7 % below today; seen once in a year."),
        ("target=20", "$20.00 88 % below today; below the lowest ever seen."),
        ("target=&kind=percent&percent=10", "$144.00 10 % below today; below the lowest ever seen."),
        ("kind=low", "A new low ever: the lowest so far is $149.00; you hear of less."),
        ("kind=low&low_days=15", "A new low of 15 days: the lowest so far is $149.00; you hear of less."),
        ("kind=low&low_days=5", "A new low of 5 days: the lowest so far is $160.00; you hear of less."),
        ("kind=back", "Back in stock: Somebody offers it now: you hear when it has gone and is back."),
        ("target=160", "$160.00 The price is already at or below it: you will be told once."),
        ("target=500.5", "$500.50 The price is already at or below it: you will be told once."),
        ("target=150&merchant=mch_083", "$150.00 11 % below today at La Cave du Pont; seen once in a year."),
        ("target=150&merchant=mch_082", "$150.00 6 % below today at Merchant X; seen once in a year."),
    ],
)
def test_a_target_is_explained_before_it_is_set(stranger: Client, query: str, meaning: str) -> None:
    assert meaning in words(stranger, f"{MONTROSE}?{query}")


@pytest.mark.usefixtures("cellar")
def test_a_merchant_who_does_not_sell_it_is_no_choice(stranger: Client) -> None:
    merchant("999", "Elsewhere")
    for key in ("mch_999", "mch_%00", "x"):
        assert "Select a valid choice" in words(stranger, f"{MONTROSE}?target=150&merchant={key}")


@pytest.mark.usefixtures("cellar")
def test_the_target_considered_is_dashed_and_one_far_away_is_named_instead(stranger: Client) -> None:
    assert "your target $150.00" in stranger.get(f"{MONTROSE}?target=150").content.decode()
    far = stranger.get(f"{MONTROSE}?target=20").content.decode()
    assert "your target $20.00</text>" not in far
    assert "Your target, $20.00, lies off the chart." in far


@pytest.mark.usefixtures("cellar")
def test_my_own_target_is_dashed_and_listed_and_nobody_elses(as_alice: Client) -> None:
    alert("151", state="paused")
    alert("140")
    alert("145")
    alert("155", owner="bob")
    text = as_alice.get(MONTROSE).content.decode()
    assert "your target $145.00" in text
    seen = words(as_alice)
    assert (
        "You watch it: $151.00 or less Paused You watch it: $145.00 or less Watching"
        " You watch it: $140.00 or less Watching"
    ) in seen
    assert "155" not in seen


@pytest.mark.usefixtures("cellar")
def test_a_wine_without_offers_still_has_a_page_and_can_be_watched(stranger: Client) -> None:
    seen = words(stranger, "/wines/wn_2")
    assert "Nobody offers it now" in seen
    assert "No price was recorded in the last 90 days." in seen
    assert "Nobody offers it now; you will be told when" in words(stranger, "/wines/wn_2?target=30")


@pytest.mark.django_db
def test_history_without_an_offer_and_one_single_price_are_drawn(stranger: Client) -> None:
    asked("20.00", days=200, by=merchant(), of=wine())
    offered("20.00", days=100, by=merchant(), of=wine())
    assert "$20.00 throughout." in words(stranger)


@pytest.mark.usefixtures("cellar")
def test_a_withdrawn_offer_is_no_price_now_and_leaves_a_gap(stranger: Client) -> None:
    left("083", days=6)
    left("082", days=2)
    seen = words(stranger)
    assert "No offer Nobody offers it now." in seen
    assert "No merchant offers this wine now." in seen
    assert "Merchant X" not in seen.partition("Facts")[0].partition("Offers")[2]
    assert "now offered by nobody." in stranger.get(MONTROSE).content.decode()
    assert "Nobody offered it –" in seen.partition("The same as a table")[2]
    assert "Nobody offers it now; you will be told when" in words(stranger, f"{MONTROSE}?target=30")
    assert "Nobody offers it now" in words(stranger, "/wines?q=montrose")


@pytest.mark.usefixtures("cellar")
def test_the_best_price_is_that_of_an_offer_that_stands(stranger: Client) -> None:
    left("082", days=2)
    seen = words(stranger)
    assert "Best price now $168.00 at La Cave du Pont" in seen
    assert "Offers 1 merchant, cheapest first" in seen
    names = [name for _, name in stranger.get(MONTROSE).context["rows"]]
    assert "Merchant X" in names  # who was the best keeps its name in the table


@pytest.mark.usefixtures("cellar")
def test_what_was_not_offered_a_week_ago_had_no_price_then(stranger: Client) -> None:
    left("083", days=8)
    offer = left("082", days=9)
    came_back(offer, days=1)
    assert "not offered a week before" in words(stranger)
    assert stranger.get(MONTROSE).context["week_ago_usd"] is None
    assert stranger.get("/wines?q=montrose").context["wines"][0].week_ago_usd is None


@pytest.mark.django_db
def test_a_price_in_other_money_is_shown_as_it_was_asked(stranger: Client) -> None:
    offer = offered("110.00", days=1, by=merchant(), of=wine())
    type(offer).objects.update(native_price="1100.00", native_currency="EUR")
    seen = words(stranger)
    assert "$110.00 at Merchant X, who asks EUR 1,100.00, seen today" in seen
    assert "$110.00 asks EUR 1,100.00" in seen
    assert "at the rate of the day" in seen


@pytest.mark.django_db
def test_a_retired_wine_cannot_be_watched_from_its_page(stranger: Client) -> None:
    wine("9", retired_at=timezone.now())
    seen = page(stranger, "/wines/wn_9")
    assert "no longer listed" in seen.words
    assert [form["method"] for form in seen.all("form")] == ["get"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/wines/%00", 400),
        ("/wines/wn_%00", 400),
        ("/wines/%ff", 404),
        ("/wines/wn_none", 404),
        ("/wines/" + "x" * 3_000, 404),
        ("/wines/wn_4417/", 404),
        ("/wines/../alerts", 404),
        ("/w/%2500/", 404),
    ],
)
def test_an_address_that_names_no_wine_is_refused(stranger: Client, path: str, status: int) -> None:
    assert stranger.get(path).status_code == status


@pytest.mark.usefixtures("cellar")
def test_the_page_takes_a_fixed_number_of_queries(
    stranger: Client, as_alice: Client, django_assert_num_queries: CountQueries
) -> None:
    for number in range(40):
        asked("99.00", days=number + 0.5, by=merchant("083"), of=wine())
        alert(str(20 + number))
    # The wine, the currencies, offers and history: of the chart, and of a year for what the target means; its standing.
    with django_assert_num_queries(6 + 2):
        stranger.get(f"{MONTROSE}?target=100&merchant=mch_083")
    with django_assert_num_queries(4 + 2 + 1):  # and its days
        stranger.get(f"{MONTROSE}?range=all")
    with django_assert_num_queries(4 + 2 + 3 + 2):  # the session, who it is, their address; their alerts, their bottles
        as_alice.get(MONTROSE)


@pytest.mark.usefixtures("cellar")
@pytest.mark.parametrize(
    ("key", "heading", "low"),
    [("30d", "The last 30 days", "149.00"), ("90d", "The last 90 days", "149.00"), ("1y", "The last year", "149.00")],
)
def test_the_chart_has_ranges_by_address(stranger: Client, key: str, heading: str, low: str) -> None:
    response = stranger.get(f"{MONTROSE}?range={key}")
    seen = Page(response.content.decode())
    assert heading in seen.words
    assert str(response.context["chart"].low.value) == low
    chosen = [link["href"] for link in seen.all("a") if link.get("aria-current") == "true"]
    assert chosen == [f"?range={key}#history"]


@pytest.mark.usefixtures("cellar")
def test_a_range_keeps_the_target_that_is_considered_and_nonsense_is_the_default(stranger: Client) -> None:
    links = [link["href"] for link in page(stranger, f"{MONTROSE}?target=150").all("a")]
    assert "?target=150&range=1y#history" in links
    for key in ("", "x", "%00", "9" * 5_000):
        assert "The last 90 days" in words(stranger, f"{MONTROSE}?range={key}")


@pytest.mark.usefixtures("cellar")
def test_all_goes_back_to_the_first_price_and_shows_gaps(stranger: Client) -> None:
    left("083", days=6)
    left("082", days=2)
    project()
    response = stranger.get(f"{MONTROSE}?range=all")
    steps = [step for step, _ in response.context["rows"]]
    assert (steps[-1].price_usd, (timezone.now() - steps[-1].at).days) == (Decimal("170.00"), 120)
    assert steps[0].until is not None
    assert ": nobody offered it –" in Page(response.content.decode()).words.partition("The same as a table")[2]


@pytest.mark.usefixtures("cellar")
def test_lows_and_highs_stand_by_period_beside_the_lowest_ever(stranger: Client) -> None:
    asked("99.00", days=800, by=merchant(), of=wine())
    project()
    seen = words(stranger)
    assert "the lowest ever was $99.00" in seen
    assert "7 days $160.00 $168.00 30 days $149.00 $171.00 90 days $149.00 $171.00 1 year $99.00 $171.00" in seen


@pytest.mark.usefixtures("cellar")
def test_my_own_bottles_are_on_the_page_and_nobody_elses(as_alice: Client, stranger: Client) -> None:
    mine = bottle(wine(), inside=cellar_of("alice"), quantity=7)
    bottle(wine(), inside=cellar_of("bob"), quantity=5)
    seen = page(as_alice)
    assert "In my cellar 7 of 75 cl" in seen.words
    assert f"/cellar/bottles/{mine.pk}" in [link["href"] for link in seen.all("a")]
    assert "In my cellar" not in words(stranger)


@pytest.mark.usefixtures("cellar")
def test_every_price_is_in_the_file_oldest_first_with_ends_and_late_ones(stranger: Client) -> None:
    merchant("083").__class__.objects.filter(pk="mch_083").update(name="=cmd|' /C calc'!A0")
    left("083", days=6)
    response = stranger.get(f"{MONTROSE}/prices.csv")
    assert response["Content-Disposition"] == 'attachment; filename="wn_4417-prices.csv"'
    head, *rows = csv.reader(io.StringIO(b"".join(response).decode("utf-8-sig")))
    assert head == ["observed_at", "merchant_id", "merchant", "price_usd", "late"]
    assert [(row[1], row[3], row[4]) for row in rows] == [
        ("mch_082", "170.00", "no"),
        ("mch_082", "150.00", "no"),
        ("mch_082", "171.00", "no"),
        ("mch_083", "149.00", "no"),
        ("mch_082", "9.00", "yes"),
        ("mch_083", "168.00", "no"),
        ("mch_083", "", "no"),
        ("mch_082", "160.00", "no"),
    ]
    assert {row[2] for row in rows} == {"Merchant X", "'=cmd|' /C calc'!A0"}
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)


@pytest.mark.django_db
def test_the_file_of_no_wine_is_not_there(stranger: Client) -> None:
    assert stranger.get("/wines/wn_none/prices.csv").status_code == 404
    assert stranger.get("/wines/%00/prices.csv").status_code == 400


@pytest.mark.usefixtures("cellar")
def test_other_methods_are_refused(stranger: Client) -> None:
    assert stranger.put(MONTROSE).status_code == 405
    assert stranger.delete(MONTROSE).status_code == 405
