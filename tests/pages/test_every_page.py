"""What holds for every page: well-formed, labelled, one heading, nothing the content security policy would block."""

from decimal import Decimal

import pytest
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone

from alerts.models import Alert, Decision, Notification
from tests.cast import alert, merchant, wine
from tests.pages.html import Page
from winecellar.accounts.models import User

ERRORS = ["400.html", "403.html", "403_csrf.html", "404.html", "429.html", "500.html", "503.html"]
FOR_ALL = [
    "/",
    "/wines?q=montrose",
    "/wines?q=nothing+of+the+kind",
    "/wines",
    "/wines?q=montrse",
    "/wines?vintage=x&low=9&high=3&colour=blue&region=" + "r" * 200,
    "/wines?order=price&stock=on",
    "/wines/wn_4417",
    "/wines/wn_4417?range=30d",
    "/wines/wn_4417?range=1y",
    "/wines/wn_4417?range=all",
    "/wines/wn_2?range=all",
    "/wines/wn_2",
    "/sign-in",
    "/sign-up",
]
WITH_TARGETS = [
    "/wines/wn_4417?target=150",
    "/wines/wn_4417?target=1",
    "/wines/wn_2?target=5",
    "/wines/wn_4417?target=x",
]


def page_of(response: HttpResponse, status: int = 200) -> Page:
    assert response.status_code == status
    return Page(response.content.decode())


def alert_in_every_state() -> list[Alert]:
    alerts = [alert(str(140 + n), state=state) for n, state in enumerate(Alert.State.values)]
    alerts += [alert("165"), alert("159", merchant=merchant("083")), alert("30", wine=wine("2"))]
    for number, outcome in enumerate(Decision.Outcome.values):
        Decision.objects.create(
            alert=alerts[2],
            event_id=f"evt_{number}",
            outcome=outcome,
            reason="below your target",
            price=Decimal("154.00") if number else None,
            merchant_name="Merchant X" if number else "",
        )
    for number, state in enumerate(Notification.State.values):
        Notification.objects.create(
            alert=alerts[2],
            event_id=f"evt_{number}",
            state=state,
            new_price=Decimal("154.00"),
            target=Decimal("160.00"),
            merchant_name="Merchant X",
            occurred_at=timezone.now(),
            settled_at=None if state == "queued" else timezone.now(),
        )
    return alerts


@pytest.mark.usefixtures("cellar")
@pytest.mark.parametrize("path", FOR_ALL + WITH_TARGETS)
def test_a_strangers_page_is_well_formed(stranger: Client, path: str) -> None:
    assert page_of(stranger.get(path)).faults == []


@pytest.mark.usefixtures("cellar")
@pytest.mark.parametrize("path", [*FOR_ALL[:-2], *WITH_TARGETS, "/alerts"])
def test_the_page_of_somebody_who_watches_is_well_formed(as_alice: Client, path: str) -> None:
    alert_in_every_state()
    assert page_of(as_alice.get(path)).faults == []


@pytest.mark.usefixtures("cellar")
def test_the_page_of_an_alert_is_well_formed_in_every_state(as_alice: Client) -> None:
    for one in alert_in_every_state():
        assert page_of(as_alice.get(f"/alerts/{one.pk}")).faults == []
        assert page_of(as_alice.post(f"/alerts/{one.pk}/edit", {"target": "a"})).faults == []


@pytest.mark.usefixtures("alice")
def test_the_pages_are_well_formed_before_there_is_anything(stranger: Client, as_alice: Client) -> None:
    for response in (stranger.get("/wines"), as_alice.get("/alerts"), stranger.post("/sign-in", {"login": "x"})):
        assert page_of(response).faults == []


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_page_is_well_formed_and_needs_neither_context_nor_database(name: str) -> None:
    assert Page(render_to_string(name)).faults == []


def test_the_reader_of_pages_finds_what_is_wrong() -> None:
    page = Page('<p style="x"><b></p><input name=a><a href="#no">x</a><h3>y</h3><script>1</script>')
    expected = [
        "no doctype",
        "</p> closes ['b']",
        "<p style>",
        "has no label",
        "refers to no",
        "<h3> after",
        "<script>",
    ]
    for fault in expected:
        assert any(fault in found for found in page.faults), (fault, page.faults)


@pytest.mark.usefixtures("cellar")
def test_every_page_carries_the_policy_that_forbids_inline_code(stranger: Client, as_alice: Client) -> None:
    for response in (
        stranger.get("/wines"),
        as_alice.get("/alerts"),
        stranger.get("/nowhere"),
        stranger.get("/wines?q=%00"),
    ):
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


@pytest.mark.usefixtures("cellar")
def test_what_merchants_and_people_write_is_escaped(as_alice: Client, alice: User) -> None:
    wine("66", name="<script>alert(1)</script>", producer='"><img src=x onerror=1>', region="{{7*7}}")
    merchant("66", "<b>Merchant</b>")
    for path in ("/", "/wines?q=%3Cscript%3E", "/wines/wn_66"):
        page = page_of(as_alice.get(path))
        assert page.faults == []
        assert not page.all("script")
        assert "49" not in page.words.split()
