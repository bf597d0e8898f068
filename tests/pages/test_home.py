"""The first page: for a stranger, for somebody who has nothing yet, and for somebody who has."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from alerts.models import Decision
from tests.cast import alert, merchant, wine
from tests.cellars.cast import bottle
from tests.cellars.cast import cellar as cellar_of
from tests.pages.cellar import asked, offered, project
from tests.pages.html import Page
from winecellar import home

CountQueries = Callable[..., Any]


def page(client: Client) -> Page:
    response = client.get("/")
    assert response.status_code == 200
    seen = Page(response.content.decode())
    assert seen.faults == []
    return seen


def words(client: Client) -> str:
    return page(client).words.replace("\u00a0", " ")


@pytest.mark.django_db
def test_a_stranger_is_told_what_this_is_and_where_to_begin_without_a_query(
    stranger: Client, django_assert_num_queries: CountQueries
) -> None:
    with django_assert_num_queries(0):
        seen = page(stranger)
    assert "we mail you within 5 minutes of a merchant asking that or less" in seen.words
    assert {"/wines", "/sign-up"} <= {link["href"] for link in seen.all("a")}


@pytest.mark.django_db
def test_whoever_has_nothing_yet_is_told_what_to_do(as_alice: Client) -> None:
    seen = words(as_alice)
    for taught in (
        "You watch no price yet.",
        "Open a wine and set what you would pay.",
        "No wine that you watch or hold costs less than a week ago.",
        "Bring your bottles",
    ):
        assert taught in seen


@pytest.mark.usefixtures("cellar")
def test_what_is_met_and_what_was_compared_since_yesterday_is_shown_to_its_owner_alone(
    as_alice: Client, stranger: Client
) -> None:
    met = alert("165", state="fired")
    alert("140")
    Decision.objects.create(
        alert=met,
        event_id="evt_1",
        outcome=Decision.Outcome.values[0],
        reason="below your target",
        price=Decimal("154.00"),
        merchant_name="Merchant X",
    )
    theirs = alert("166", state="fired", owner="bob")
    old = Decision.objects.create(
        alert=met,
        event_id="evt_0",
        outcome=Decision.Outcome.values[0],
        reason="long ago",
        price=Decimal("1.00"),
    )
    Decision.objects.filter(pk=old.pk).update(decided_at=timezone.now() - 2 * home.DAY)
    seen = page(as_alice)
    assert "You watch 2 prices." in seen.words
    assert "Ch. Montrose 2016 told at $165.00, your target $165.00" in seen.words
    assert "$154.00 at Merchant X, today" in seen.words
    assert "long ago" not in seen.words
    assert f"/alerts/{theirs.pk}" not in [link["href"] for link in seen.all("a")]


@pytest.mark.django_db
def test_the_biggest_falls_are_those_of_wines_watched_or_held(as_alice: Client) -> None:
    for number, (before, now) in enumerate([("100", "90"), ("100", "50"), ("100", "70")]):
        asked(before, days=20, by=merchant(), of=wine(str(number), name=f"Cru {number}"))
        offered(now, days=2, by=merchant(), of=wine(str(number)))
    project()
    alert("20", wine=wine("0"))
    bottle(wine("2"), inside=cellar_of("alice"))
    seen = words(as_alice)
    assert "Cru 2 2016 $70.00, down 30 % from $100.00 Cru 0 2016 $90.00, down 10 % from $100.00" in seen
    assert "Cru 1" not in seen


@pytest.mark.usefixtures("cellar")
def test_the_page_takes_a_fixed_number_of_queries(as_alice: Client, django_assert_num_queries: CountQueries) -> None:
    for number in range(30):
        alert(str(100 + number), state="fired" if number % 2 else "armed")
        asked("200.00", days=20, by=merchant(), of=wine(str(number)))
        offered("150.00", days=2, by=merchant(), of=wine(str(number)))
        bottle(wine(str(number)), inside=cellar_of("alice"))
    project()
    # The session, who it is, their address, that it works, what is unread; alerts, the met, what was compared, the
    # wines, their falls and names; the cellar and its nights.
    with django_assert_num_queries(5 + 6 + 2):
        as_alice.get("/")
