"""Codes of an app: optional for people, asked of the staff by the admin."""

import time
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.management import CommandError, call_command
from django.test import Client

from tests.accounts.conftest import PASSWORD, mails
from tests.cast import person
from tests.pages.html import Page
from winecellar.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)
START = 1_700_000_000.0


class Phone:
    """An authenticator app, and the clock by which everybody goes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = START
        patch.setattr(time, "time", lambda: self.now)
        self.secret = ""

    def code(self, steps: int = 0) -> str:
        return format_hotp_value(hotp_value(self.secret, int(self.now) // 30 + steps))

    def wait(self, seconds: float = 30) -> None:
        self.now += seconds


@pytest.fixture
def phone(monkeypatch: pytest.MonkeyPatch) -> Phone:
    return Phone(monkeypatch)


def page(response: Any) -> Page:
    return Page(response.content.decode())


def words(response: Any) -> str:
    return page(response).words


def add_app(client: Client, phone: Phone) -> Any:
    client.post("/account/it-is-you", {"password": PASSWORD})
    client.get("/account/second-factor/add")
    phone.secret = client.session["mfa.totp.secret"]
    return client.post("/account/second-factor/add", {"code": phone.code()}, follow=True)


def sign_in(code: str | None = None) -> tuple[Client, Any]:
    client = Client()
    answer = client.post("/sign-in", {"login": "alice@winecellar.example", "password": PASSWORD})
    if code is not None:
        assert answer["Location"] == "/sign-in/code"
        answer = client.post("/sign-in/code", {"code": code})
    return client, answer


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_an_app_is_added_with_its_code_and_signing_in_asks_for_one(as_alice: Client, phone: Phone) -> None:
    answer = add_app(as_alice, phone)
    assert "Recovery codes" in words(answer)
    assert len(page(answer).all("code")) == 10
    assert [told.subject for told in mails()] == ["Signing in now asks for a code"]
    phone.wait()
    client, answer = sign_in()
    assert not signed_in(client)
    client, answer = sign_in("000000")
    assert "This code is not right" in words(answer)
    assert not signed_in(client)
    client, answer = sign_in(phone.code())
    assert answer["Location"] == "/alerts"
    assert signed_in(client)


def test_a_code_is_good_for_one_sign_in(as_alice: Client, phone: Phone) -> None:
    add_app(as_alice, phone)
    phone.wait()
    assert signed_in(sign_in(phone.code())[0])
    again, answer = sign_in(phone.code())
    assert "was used already" in words(answer)
    assert not signed_in(again)


@pytest.mark.parametrize(("steps", "good"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_phones_clock_may_be_half_a_minute_off(as_alice: Client, phone: Phone, steps: int, good: bool) -> None:
    add_app(as_alice, phone)
    phone.wait(300)
    assert signed_in(sign_in(phone.code(steps))[0]) is good


def test_a_recovery_code_signs_in_once(as_alice: Client, phone: Phone) -> None:
    answer = add_app(as_alice, phone)
    code = Authenticator.objects.get(type="recovery_codes").wrap().get_unused_codes()[0]
    assert code in words(answer)
    assert signed_in(sign_in(code)[0])
    assert not signed_in(sign_in(code)[0])


def test_guessing_codes_ends_soon(as_alice: Client, phone: Phone) -> None:
    add_app(as_alice, phone)
    phone.wait()
    client, _ = sign_in("000000")
    for _ in range(5):
        answer = client.post("/sign-in/code", {"code": "000000"})
    assert "That was wrong too often." in words(answer)
    assert not signed_in(client)
    client.post("/sign-in/code", {"code": phone.code()})
    assert not signed_in(client)


def test_the_page_shows_the_code_to_scan_and_the_same_key_in_letters(as_alice: Client, phone: Phone) -> None:
    as_alice.post("/account/it-is-you", {"password": PASSWORD})
    seen = page(as_alice.get("/account/second-factor/add"))
    assert seen.faults == []
    (image,) = [tag for tag in seen.all("img") if tag["class"] == "qr"]
    assert image["src"].startswith("data:image/svg+xml;base64,")
    assert image["alt"]
    assert as_alice.session["mfa.totp.secret"] in seen.words


def test_adding_and_removing_ask_for_the_password_first(as_alice: Client, phone: Phone) -> None:
    assert as_alice.get("/account/second-factor/add")["Location"].startswith("/account/it-is-you?")
    add_app(as_alice, phone)
    phone.wait(301)  # the password typed again counts for five minutes
    assert as_alice.post("/account/second-factor/remove")["Location"].startswith("/account/it-is-you?")
    assert Authenticator.objects.filter(type="totp").exists()
    as_alice.post("/account/it-is-you", {"password": PASSWORD})
    as_alice.post("/account/second-factor/remove")
    assert not Authenticator.objects.exists()
    assert signed_in(sign_in()[0])


def test_an_address_that_is_not_confirmed_gets_no_second_factor(phone: Phone) -> None:
    """It could be somebody else's, who then could never have the account back by a mail."""
    dora = person("dora", confirmed=False)
    dora.set_password(PASSWORD)
    dora.save()
    client = Client()
    client.force_login(dora)
    assert "Confirm your address first" in words(add_app(client, phone))
    assert not Authenticator.objects.exists()


def test_who_has_an_app_can_change_their_address(as_alice: Client, phone: Phone) -> None:
    add_app(as_alice, phone)
    mails()
    as_alice.post("/account/address", {"email": "alice@new.example", "action_add": "1"})
    assert [message.to for message in mails()] == [["alice@new.example"]]


def test_secrets_are_sealed_and_follow_a_new_secret_key(as_alice: Client, phone: Phone, settings: Any) -> None:
    add_app(as_alice, phone)
    for row in Authenticator.objects.all():
        assert phone.secret not in str(row.data)
    old = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 50, [old]
    call_command("reseal_second_factors")
    settings.SECRET_KEY_FALLBACKS = []
    phone.wait()
    assert signed_in(sign_in(phone.code())[0])


def test_a_secret_that_cannot_be_read_refuses_in_words_and_is_counted(
    as_alice: Client, phone: Phone, settings: Any
) -> None:
    add_app(as_alice, phone)
    settings.SECRET_KEY = "n" * 50
    phone.wait()
    client, answer = sign_in(phone.code())
    assert answer.status_code == 200
    assert "cannot be read any more" in words(answer)
    assert not signed_in(client)
    client.force_login(User.objects.get())
    for path in ("", "/new", "/file"):
        client.post("/account/it-is-you", {"password": PASSWORD})
        answer = client.get(f"/account/recovery-codes{path}", follow=True)
        assert answer.redirect_chain[-1][0] == "/account/second-factor"
        assert "cannot be read any more" in words(answer)
    with pytest.raises(CommandError, match="2 cannot be read"):
        call_command("reseal_second_factors")


# --- The admin ---------------------------------------------------------------------------------------------------


@pytest.fixture
def operator(alice: User) -> User:
    alice.is_staff = alice.is_superuser = True
    alice.save()
    return alice


def test_the_admin_leads_an_operator_without_an_app_to_set_one_up(
    operator: User, as_alice: Client, phone: Phone
) -> None:
    for path in ("/admin/", "/admin/accounts/user/", f"/admin/accounts/user/{operator.pk}/change/"):
        answer = as_alice.get(path, follow=True)
        assert answer.redirect_chain[-1][0] == "/account/second-factor"
        assert "The admin asks for a second factor." in words(answer)
    add_app(as_alice, phone)
    assert as_alice.get("/admin/accounts/user/").status_code == 200
    as_alice.post("/account/second-factor/remove")
    assert as_alice.get("/admin/").status_code == 302


def test_the_admin_lets_nobody_past_the_sites_own_sign_in(operator: User, phone: Phone) -> None:
    client = Client()
    answer = client.get("/admin/accounts/user/", follow=True)
    assert answer.redirect_chain[-1][0] == "/sign-in?next=%2Fadmin%2Faccounts%2Fuser%2F"
    posted = client.post("/admin/login/", {"username": operator.email, "password": PASSWORD, "next": "/admin/"})
    assert posted["Location"].startswith("/sign-in")
    assert not signed_in(client)


def test_the_admin_is_closed_to_people(as_alice: Client) -> None:
    assert as_alice.get("/admin/", follow=True).status_code == 403


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_the_admins_door_leads_only_within_the_site(
    operator: User, as_alice: Client, wanted: str, settings: Any
) -> None:
    settings.STAFF_NEED_SECOND_FACTOR = False
    assert as_alice.get("/admin/login/", {"next": wanted})["Location"] == "/admin/"


def test_an_operator_takes_a_lost_second_factor_away_and_sees_no_secret(
    operator: User, as_alice: Client, phone: Phone
) -> None:
    add_app(as_alice, phone)
    bobs = Authenticator.objects.create(user=person("bob"), type="totp", data={"secret": "sealed-secret-of-bob"})
    seen = as_alice.get(f"/admin/mfa/authenticator/{bobs.pk}/change/").content.decode()
    assert "sealed-secret-of-bob" not in seen
    assert as_alice.post(f"/admin/mfa/authenticator/{bobs.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Authenticator.objects.filter(pk=bobs.pk).exists()
