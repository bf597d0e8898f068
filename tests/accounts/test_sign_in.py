"""Signing in by email, and out again."""

import pytest
from django.test import Client

from tests.accounts.conftest import PASSWORD
from tests.pages.html import Page
from winecellar.accounts.models import User


def page(response: object) -> Page:
    return Page(response.content.decode())  # type: ignore[attr-defined]


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


@pytest.mark.parametrize(
    "spelling", ["alice@winecellar.example", "Alice@WINECELLAR.example", " alice@winecellar.example "]
)
def test_the_right_password_signs_in_however_the_address_is_spelt(stranger: Client, alice: User, spelling: str) -> None:
    response = stranger.post("/sign-in", {"login": spelling, "password": PASSWORD})
    assert response["Location"] == "/alerts"
    assert signed_in(stranger)


@pytest.mark.parametrize(
    ("email", "password"),
    [
        ("alice@winecellar.example", "wrong"),
        ("nobody@winecellar.example", PASSWORD),
        ("alice@winecellar.example", PASSWORD + " "),
    ],
)
@pytest.mark.usefixtures("alice")
def test_an_unknown_address_and_a_wrong_password_get_the_same_answer(
    stranger: Client, email: str, password: str
) -> None:
    response = stranger.post("/sign-in", {"login": email, "password": password})
    assert response.status_code == 200
    seen = page(response)
    assert "do not belong together. Try again." in seen.words
    fields = {field["name"]: field for field in seen.all("input")}
    assert fields["login"]["value"] == email
    assert "value" not in fields["password"]
    assert fields["password"]["aria-describedby"] == "id_password_error"
    assert not signed_in(stranger)


def test_a_closed_account_does_not_sign_in_and_only_its_owner_is_told_why(stranger: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    answer = stranger.post("/sign-in", {"login": alice.email, "password": PASSWORD}, follow=True)
    assert "This account is closed" in page(answer).words
    answer = stranger.post("/sign-in", {"login": alice.email, "password": "wrong"})
    assert "do not belong together" in page(answer).words
    assert not signed_in(stranger)


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        ({}, "Enter your email address."),
        ({"login": "anna", "password": "x"}, "Enter an email address, such as"),
        ({"login": "a@b.c\nBcc: x", "password": "x"}, "Enter an email address"),
        ({"login": "a@b.example\x00", "password": "x"}, "Null characters are not allowed"),
        ({"login": "a@b.example", "password": ""}, "Enter your password."),
        ({"login": "a@b.example", "password": "x\x00"}, "Null characters are not allowed"),
        ({"login": "a@b.example", "password": "x" * 100_000}, "at most 4096 characters"),
        ({"login": "a" * 400 + "@b.example", "password": "x"}, "at most 254 characters"),
    ],
)
@pytest.mark.django_db
def test_what_cannot_be_right_is_answered_beside_its_field(stranger: Client, data: dict[str, str], advice: str) -> None:
    response = stranger.post("/sign-in", data)
    assert response.status_code == 200
    assert advice in page(response).words


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ("/wines/wn_1?target=5#watch", "/wines/wn_1?target=5#watch"),
        ("https://evil.example/", "/alerts"),
        ("//evil.example/", "/alerts"),
        ("javascript:alert(1)", "/alerts"),
        ("http:///evil.example", "/alerts"),
        ("/\\evil.example", "/alerts"),
    ],
)
def test_next_is_followed_within_this_site_only(stranger: Client, alice: User, wanted: str, given: str) -> None:
    response = stranger.post("/sign-in", {"login": alice.email, "password": PASSWORD, "next": wanted})
    assert response["Location"] == given


@pytest.mark.django_db
def test_the_page_helps_password_managers_and_leads_to_signing_up_with_where_one_was_going(stranger: Client) -> None:
    seen = page(stranger.get("/sign-in?next=/alerts/5"))
    fields = {field["name"]: field for field in seen.all("input")}
    assert (fields["login"]["type"], fields["login"]["autocomplete"]) == ("email", "username")
    assert (fields["password"]["type"], fields["password"]["autocomplete"]) == ("password", "current-password")
    assert fields["next"]["value"] == "/alerts/5"
    assert "/sign-up?next=%2Falerts%2F5" in [a["href"] for a in seen.all("a")]


def test_who_is_signed_in_already_is_sent_on(as_alice: Client) -> None:
    assert as_alice.get("/sign-in?next=/alerts")["Location"] == "/alerts"


def test_signing_out_is_by_post_only(as_alice: Client) -> None:
    assert as_alice.get("/sign-out").status_code == 405
    assert signed_in(as_alice)
    assert as_alice.post("/sign-out")["Location"] == "/"
    assert not signed_in(as_alice)


def test_the_header_offers_what_fits(stranger: Client, as_alice: Client) -> None:
    assert "Wines My cellar My alerts Sign in" in page(stranger.get("/")).words
    assert "Wines My cellar My alerts Notifications Account" in page(as_alice.get("/")).words
    assert [a["href"] for a in page(as_alice.get("/alerts")).all("a") if a.get("aria-current") == "page"] == ["/alerts"]


@pytest.mark.django_db
def test_the_skip_link_is_the_first_thing_on_the_page_and_leads_to_the_content(stranger: Client) -> None:
    seen = page(stranger.get("/"))
    assert seen.all("a")[0] == {"class": "skip", "href": "#main"}
    assert [tag["id"] for tag in seen.all("main")] == ["main"]
