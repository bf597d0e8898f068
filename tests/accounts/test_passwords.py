"""A forgotten password, and a changed one."""

from typing import Any

import pytest
from django.contrib.auth import tokens
from django.core import mail
from django.test import Client

from tests.accounts.conftest import PASSWORD, link_in, mails
from tests.cast import person
from tests.pages.html import Page
from winecellar.accounts.models import AccountMail, User

pytestmark = pytest.mark.django_db(transaction=True)
NEW = "another-long-one"


def page(response: Any) -> Page:
    return Page(response.content.decode())


def ask(email: str) -> Any:
    return Client().post("/new-password", {"email": email})


def form_behind(client: Client, link: str) -> str:
    """The link leads on to an address without the token, so that no Referer carries it away."""
    answer = client.get(link)
    assert answer.status_code == 302
    assert answer["Location"].endswith("-set-password")
    return str(answer["Location"])


def test_a_link_in_a_mail_sets_another_password_and_tells_so(alice: User) -> None:
    signed_in = Client()
    signed_in.force_login(alice)
    assert ask(alice.email)["Location"] == "/new-password/look-into-your-mail"
    assert not mail.outbox
    (message,) = mails()
    assert (message.to, message.subject) == ([alice.email], "Set a new password")
    browser = Client()
    answer = browser.post(form_behind(browser, link_in(message)), {"password1": NEW}, follow=True)
    assert "Every browser that was signed in to your account is signed out." in page(answer).words
    alice.refresh_from_db()
    assert alice.check_password(NEW)
    assert signed_in.get("/account").status_code == 302  # signed out everywhere
    assert [told.subject for told in mails()] == ["Your password was changed"]


def test_an_unknown_address_gets_the_same_answer(alice: User) -> None:
    known, unknown = ask(alice.email), ask("nobody@winecellar.example")
    assert (known.status_code, known["Location"], known.content) == (
        unknown.status_code,
        unknown["Location"],
        unknown.content,
    )
    pages = [Client().get(answer["Location"]).content for answer in (known, unknown)]
    assert pages[0] == pages[1]
    assert {message.to[0]: message.subject for message in mails()} == {
        alice.email: "Set a new password",
        "nobody@winecellar.example": "There is no account for this address",
    }


def test_a_link_works_once(alice: User) -> None:
    ask(alice.email)
    (message,) = mails()
    browser = Client()
    browser.post(form_behind(browser, link_in(message)), {"password1": NEW})
    again = Client().get(link_in(message))
    assert again.status_code == 400
    assert "This link does not work" in page(again).words


def test_a_link_works_no_longer_than_it_says(alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(alice.email)
    (message,) = mails()
    assert "within 60 minutes" in str(message.body)
    real = tokens.PasswordResetTokenGenerator._now

    def later(self: Any) -> Any:
        from datetime import timedelta

        return real(self) + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT + 1)

    monkeypatch.setattr(tokens.PasswordResetTokenGenerator, "_now", later)
    assert Client().get(link_in(message)).status_code == 400


@pytest.mark.parametrize("key", ["1-x", "zzzzzzzzzzzzz-x", "1-set-password", "1-" + "a" * 3_000, "0-%00"])
def test_a_link_that_was_never_sent_is_refused(alice: User, key: str) -> None:
    assert Client().get(f"/new-password/{key}").status_code == 400
    assert Client().post(f"/new-password/{key}", {"password1": NEW}).status_code == 400


def test_a_link_that_waited_too_long_in_the_queue_is_not_sent(alice: User) -> None:
    ask(alice.email)
    AccountMail.objects.update(wanted_until="2026-01-01T00:00:00Z")
    assert mails() == []
    assert not AccountMail.objects.exists()


def test_a_closed_account_gets_no_link(alice: User) -> None:
    User.objects.update(is_active=False)
    ask(alice.email)
    assert [message.subject for message in mails()] == ["There is no account for this address"]


def test_an_address_that_somebody_only_wants_to_change_to_does_not_open_their_account(as_alice: Client) -> None:
    as_alice.post("/account/it-is-you", {"password": PASSWORD})
    as_alice.post("/account/address", {"email": "mistyped@winecellar.example", "action_add": "1"})
    assert [message.to for message in mails()] == [["mistyped@winecellar.example"]]
    ask("mistyped@winecellar.example")
    assert [message.subject for message in mails()] == ["There is no account for this address"]


def test_changing_the_password_signs_every_other_browser_out_and_tells_so(alice: User, as_alice: Client) -> None:
    other = Client()
    other.force_login(alice)
    answer = as_alice.post("/account/password", {"oldpassword": PASSWORD, "password1": NEW}, follow=True)
    assert "Your password is changed." in page(answer).words
    assert as_alice.get("/account").status_code == 200
    assert other.get("/account").status_code == 302
    assert [told.subject for told in mails()] == ["Your password was changed"]


@pytest.mark.parametrize(
    ("old", "new", "advice"),
    [("wrong", NEW, "This is not your password."), (PASSWORD, "short", "at least 10 characters")],
)
def test_a_wrong_or_a_weak_one_changes_nothing(alice: User, as_alice: Client, old: str, new: str, advice: str) -> None:
    answer = as_alice.post("/account/password", {"oldpassword": old, "password1": new})
    assert answer.status_code == 200
    assert advice in page(answer).words
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_whoever_has_no_password_is_led_to_have_one_mailed() -> None:
    client = Client()
    client.force_login(person("dora"))
    assert client.get("/account/password")["Location"] == "/account/password/first"
    assert client.get("/account/password/first")["Location"] == "/new-password"
