"""Creating an alert on a wine's page: what is stored, what is refused, and what is kept of what was typed."""

from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from alerts.models import Alert
from jobs.models import LoggedMessage
from tests.cast import alert, wine
from tests.pages.conftest import PASSWORD
from tests.pages.html import Page
from winecellar.accounts.models import User

MONTROSE = "/wines/wn_4417"
pytestmark = pytest.mark.usefixtures("cellar")

NOT_A_TARGET = {
    "": "Enter the price you wait for",
    " ": "Enter the price you wait for",
    "0": "Enter a price above zero.",
    "0.00": "Enter a price above zero.",
    "-5": "Enter a price above zero.",
    "NaN": "in digits",
    "Infinity": "in digits",
    "1e20": "in digits",
    "1e2": "in digits",
    "12.345": "at most two after the point",
    "12.": "in digits",
    ".5": "in digits",
    "१२": "in digits",
    "１２": "in digits",
    "1_000": "in digits",
    "+5": "in digits",
    "0x10": "in digits",
    "12 50": "in digits",
    "12,50": "Use a point for cents",
    "1,250.00": "Use a point for cents",
    "<b>": "in digits",
    "100000000": "at most $99,999,999.99",
    "9" * 40: "at most $99,999,999.99",
    "9" * 41: "at most 40 characters",
    "1\x00": "Null characters are not allowed",
}


def page(response: object) -> Page:
    return Page(response.content.decode())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("typed", "stored"), [("150", "150.00"), (" 149.5 ", "149.50"), ("$0.01", "0.01"), ("007", "7.00")]
)
def test_a_target_is_stored_pending_with_the_price_then_and_matching_is_asked(
    as_alice: Client, alice: User, typed: str, stored: str
) -> None:
    response = as_alice.post(MONTROSE, {"target": typed, "merchant": ""})
    made = Alert.objects.get()
    assert (made.user, made.wine_id, made.merchant, made.state) == (alice, "wn_4417", None, "pending")
    assert (made.target, made.price_when_created) == (Decimal(stored), Decimal("160.00"))
    assert response["Location"] == f"/alerts/{made.pk}"
    message = LoggedMessage.objects.get(type="alert.created")
    assert (message.key, message.body) == ("wn_4417", {"alert_id": made.pk, "wine_id": "wn_4417"})


def test_who_creates_an_alert_is_told_what_happens_next_and_sees_it_at_once(as_alice: Client) -> None:
    response = as_alice.post(MONTROSE, {"target": "150"}, follow=True)
    assert "Alert created — we'll check prices within a minute." in page(response).words
    assert "Checking…" in page(response).words
    assert "Ch. Montrose 2016 Checking… at any merchant" in page(as_alice.get("/alerts")).words


def test_the_figure_in_the_message_is_the_settings(as_alice: Client, settings: object) -> None:
    settings.FIRST_CHECK_PROMISE *= 3  # type: ignore[attr-defined]
    response = as_alice.post(MONTROSE, {"target": "150"}, follow=True)
    assert "we'll check prices within 3 minutes." in page(response).words


def test_one_merchant_may_be_chosen_and_the_price_then_is_that_merchants(as_alice: Client) -> None:
    as_alice.post(MONTROSE, {"target": "150", "merchant": "mch_083"})
    made = Alert.objects.get()
    assert (made.merchant_id, made.price_when_created) == ("mch_083", Decimal("168.00"))


@pytest.mark.parametrize(("typed", "advice"), NOT_A_TARGET.items())
def test_what_is_no_target_is_refused_beside_the_field_and_kept_as_typed(
    as_alice: Client, typed: str, advice: str
) -> None:
    response = as_alice.post(MONTROSE, {"target": typed})
    assert response.status_code == 200
    assert not Alert.objects.exists()
    assert not LoggedMessage.objects.filter(type="alert.created").exists()
    seen = page(response)
    assert advice in seen.words
    (field,) = [one for one in seen.all("input") if one["name"] == "target"]
    assert field.get("value", "").replace("\ufffd", "\x00") == typed
    assert field["aria-invalid"] == "true"
    assert field["aria-describedby"] == "id_target_error"


def test_a_merchant_that_does_not_sell_it_is_refused(as_alice: Client) -> None:
    for key in ("mch_none", "\x00", "' OR 1=1"):
        response = as_alice.post(MONTROSE, {"target": "150", "merchant": key})
        assert response.status_code == 200
        assert "Select a valid choice" in page(response).words
    assert not Alert.objects.exists()


def test_fields_that_the_form_does_not_have_are_ignored(as_alice: Client, alice: User) -> None:
    as_alice.post(MONTROSE, {"target": "150", "state": "fired", "user": "999", "id": "7", "target_usd": "1"})
    made = Alert.objects.get()
    assert (made.user, made.state, made.target) == (alice, "pending", Decimal("150.00"))


def test_the_same_alert_twice_leads_to_the_first(as_alice: Client) -> None:
    as_alice.post(MONTROSE, {"target": "150"})
    response = as_alice.post(MONTROSE, {"target": "150.00"})
    assert response["Location"] == f"/alerts/{Alert.objects.get().pk}"
    assert "already watch this wine like that" in str(list(get_messages(response.wsgi_request))[-1])


def test_one_alert_too_many_is_refused_in_words(as_alice: Client, settings: object) -> None:
    settings.ALERTS_PER_USER = 1  # type: ignore[attr-defined]
    alert("100")
    response = as_alice.post(MONTROSE, {"target": "150"})
    assert response.status_code == 200
    assert "You have 1 alerts, which is the most there can be. Delete one first." in page(response).words
    assert Alert.objects.count() == 1


def test_a_wine_that_is_no_longer_listed_is_refused_in_words(as_alice: Client) -> None:
    wine("9", retired_at="2026-01-01T00:00Z")
    response = as_alice.post("/wines/wn_9", {"target": "150"})
    assert response.status_code == 200
    assert "no longer listed" in page(response).words
    assert not Alert.objects.exists()


def test_looking_first_stores_nothing_and_shows_what_the_target_means(as_alice: Client) -> None:
    response = as_alice.post(MONTROSE, {"target": "150", "merchant": "mch_083", "preview": "1"})
    assert response["Location"] == f"{MONTROSE}?target=150&merchant=mch_083#watch"
    assert not Alert.objects.exists()


def test_a_stranger_signs_in_and_finds_the_target_as_typed(stranger: Client, alice: User) -> None:
    sent = stranger.post(MONTROSE, {"target": "150.50"})
    where = urlsplit(sent["Location"])
    assert where.path == "/sign-in"
    back = parse_qs(where.query)["next"][0]
    signed_in = stranger.post("/sign-in", {"login": alice.email, "password": PASSWORD, "next": back})
    assert signed_in["Location"] == f"{MONTROSE}?target=150.50#watch"
    fields = page(stranger.get(signed_in["Location"])).all("input")
    assert [field["value"] for field in fields if field["name"] == "target"] == ["150.50"]
    assert not Alert.objects.exists()


def test_a_form_without_its_token_is_refused_with_our_own_page(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    response = client.post(MONTROSE, {"target": "150"})
    assert response.status_code == 403
    assert "That form was out of date" in page(response).words
    assert not Alert.objects.exists()


def test_a_token_from_before_signing_in_is_refused(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    before = client.get(MONTROSE).context["csrf_token"]
    signed_in = client.post(
        "/sign-in", {"login": alice.email, "password": PASSWORD, "csrfmiddlewaretoken": str(before)}
    )
    assert signed_in.status_code == 302
    assert client.post(MONTROSE, {"target": "150", "csrfmiddlewaretoken": str(before)}).status_code == 403
    after = client.get(MONTROSE).context["csrf_token"]
    assert client.post(MONTROSE, {"target": "150", "csrfmiddlewaretoken": str(after)}).status_code == 302


def test_a_form_with_a_thousand_and_one_fields_is_refused(as_alice: Client) -> None:
    response = as_alice.post(MONTROSE, {f"f{n}": "1" for n in range(1_001)})
    assert response.status_code == 400
