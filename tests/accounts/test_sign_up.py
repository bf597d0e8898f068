"""From signing up to the confirmed address: one answer for all, one mail through the queue, one use of the link."""

from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import hashers
from django.core import mail, signing
from django.test import Client
from django.utils import timezone

from alerts.models import Alert
from jobs.models import Delivery, LoggedMessage
from jobs.worker import drain
from tests.accounts.conftest import PASSWORD, link_in, mails
from tests.cast import alert, person, price, wine
from tests.pages.html import Page
from winecellar.accounts.models import AccountMail, User

pytestmark = pytest.mark.django_db(transaction=True)
DORA = "dora@winecellar.example"


def sign_up(client: Client, email: str = DORA, **extra: Any) -> Any:
    return client.post("/sign-up", {"email": email, "password1": "claret-and-port"}, **extra)


def page(response: Any) -> Page:
    return Page(response.content.decode())


def test_whoever_signs_up_gets_a_link_and_is_signed_in_by_it_in_the_same_browser(stranger: Client) -> None:
    answer = sign_up(stranger)
    assert answer["Location"] == "/sign-up/look-into-your-mail"
    assert not mail.outbox  # nothing was sent inside the request
    assert not User.objects.get().address_is_confirmed
    (message,) = mails()
    assert (message.to, message.subject) == ([DORA], "Confirm your address")
    asked = stranger.get(link_in(message))
    assert f"Is {DORA} yours?" in page(asked).words
    assert not User.objects.get().address_is_confirmed  # a mailbox's scanner opens links, too
    confirmed = stranger.post(link_in(message), follow=True)
    assert f"{DORA} is confirmed." in page(confirmed).words
    assert "_auth_user_id" in stranger.session
    assert User.objects.get().address_is_confirmed


def test_in_another_browser_the_link_confirms_and_signs_nobody_in(stranger: Client) -> None:
    sign_up(stranger)
    (message,) = mails()
    elsewhere = Client()
    elsewhere.post(link_in(message))
    assert "_auth_user_id" not in elsewhere.session
    assert User.objects.get().address_is_confirmed


def test_a_link_works_once(stranger: Client) -> None:
    sign_up(stranger)
    (message,) = mails()
    stranger.post(link_in(message))
    for answer in (Client().get(link_in(message)), Client().post(link_in(message))):
        assert answer.status_code == 400
        assert "This link does not work" in page(answer).words


def test_a_link_expires(stranger: Client, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_up(stranger)
    (message,) = mails()
    later = timezone.now() + timedelta(days=settings.ACCOUNT_EMAIL_CONFIRMATION_EXPIRE_DAYS, seconds=1)
    monkeypatch.setattr(signing.time, "time", later.timestamp)
    assert Client().post(link_in(message)).status_code == 400
    assert not User.objects.get().address_is_confirmed


@pytest.mark.parametrize("key", ["x", "MQ:1abc:def", "%00", "a" * 3_000])
def test_a_link_that_was_never_sent_is_refused(stranger: Client, key: str) -> None:
    assert stranger.get(f"/confirm-address/{key}").status_code == 400
    assert stranger.post(f"/confirm-address/{key}").status_code == 400


def test_an_address_that_has_an_account_gets_the_same_answer_and_another_mail(alice: User) -> None:
    known, new = sign_up(Client(), alice.email), sign_up(Client())
    assert (known.status_code, known["Location"]) == (new.status_code, new["Location"])
    assert known.content == new.content
    assert set(known.cookies) == set(new.cookies)
    subjects = {message.to[0]: message.subject for message in mails()}
    assert subjects == {alice.email: "You have an account already", DORA: "Confirm your address"}
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)  # and the new password is nobody's


def test_both_answers_take_the_time_of_one_hash(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    real = hashers.make_password
    monkeypatch.setattr(
        "django.contrib.auth.base_user.make_password", lambda *a, **k: hashed.append(a[0]) or real(*a, **k)
    )
    for email in (alice.email, DORA):
        hashed.clear()
        sign_up(Client(), email)
        assert hashed.count("claret-and-port") == 1, email


def test_two_who_sign_up_at_once_with_one_address_are_one_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other request's account appears between our look and our write."""
    from winecellar.accounts.forms import SignUpForm

    real = SignUpForm.validate_unique_email

    def look_then_lose(self: Any, value: str) -> str:
        looked = real(self, value)
        User.objects.create_user(value)
        return looked

    monkeypatch.setattr(SignUpForm, "validate_unique_email", look_then_lose)
    assert sign_up(Client())["Location"] == "/sign-up/look-into-your-mail"
    assert User.objects.count() == 1
    assert [message.subject for message in mails()] == ["You have an account already"]


@pytest.mark.parametrize(
    ("email", "advice"),
    [
        ("a@b.example\nBcc: x@y.example", "Enter an email address"),
        ("a@b.example, c@d.example", "Enter an email address"),
        ("a" * 250 + "@b.example", "at most 254 characters"),
        ("a@b.example\x00", "Null characters are not allowed"),
        ("anna@müller.example", "plain letters"),
        ("änna@b.example", "Enter an email address"),
        ("", "Enter your email address."),
    ],
)
def test_what_is_no_address_is_answered_beside_its_field(stranger: Client, email: str, advice: str) -> None:
    answer = sign_up(stranger, email)
    assert answer.status_code == 200
    assert advice in page(answer).words
    assert not User.objects.exists()
    assert not AccountMail.objects.exists()


@pytest.mark.parametrize(
    ("password", "advice"),
    [
        ("short", "at least 10 characters"),
        ("password123", "too common"),
        ("1234509876123", "entirely numeric"),
        ("dora@winecellar", "too similar"),
        ("", "Enter a password."),
        ("x" * 100_000, "at most 4096 characters"),
    ],
)
def test_a_password_that_others_would_guess_is_refused(stranger: Client, password: str, advice: str) -> None:
    answer = stranger.post("/sign-up", {"email": DORA, "password1": password})
    assert answer.status_code == 200
    assert advice in page(answer).words
    assert not User.objects.exists()


def test_no_mail_has_the_host_that_a_request_says_it_came_to(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITE_URL = "https://cellar.example"
    alice = person("alice")
    evil = {"HTTP_HOST": "evil.example", "HTTP_X_FORWARDED_HOST": "evil.example"}
    sign_up(Client(), **evil)
    sign_up(Client(), alice.email, **evil)
    Client().post("/new-password", {"email": "nobody@winecellar.example"}, **evil)
    Client().post("/new-password", {"email": alice.email}, **evil)
    sent = mails()
    assert len(sent) == 4
    for message in sent:
        whole = message.message().as_string()
        assert "evil.example" not in whole
        assert "https://cellar.example/" in str(message.body)


def test_the_message_log_holds_neither_the_address_nor_the_link(stranger: Client) -> None:
    sign_up(stranger)
    (command,) = LoggedMessage.objects.filter(type="send_account_email")
    assert set(command.body) == {"account_mail_id"}
    row = AccountMail.objects.get()
    (message,) = mails()
    assert link_in(message) not in row.sealed_text + row.sealed_html
    assert not AccountMail.objects.exists()  # sent, so its text is needed no more


def test_an_account_and_its_mail_are_there_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the queue cannot be written")

    monkeypatch.setattr("winecellar.accounts.services.publish", fail)
    with pytest.raises(RuntimeError):
        sign_up(Client())
    assert not User.objects.exists()
    assert not AccountMail.objects.exists()


# --- Before the address is confirmed -----------------------------------------------------------------------------


def test_who_has_not_confirmed_may_sign_in_and_set_alerts_which_wait(stranger: Client) -> None:
    wine()
    price("150.00")
    sign_up(stranger)
    (message,) = mails()
    stranger.post("/sign-in", {"login": DORA, "password": "claret-and-port"})
    answer = stranger.post("/wines/wn_4417", {"target": "160"}, follow=True)
    words = page(answer).words
    assert "Alert created. It waits until you have confirmed your address." in words
    assert "Address not confirmed" in words
    assert f"Your alerts wait: {DORA} is not confirmed yet." in words
    assert "Address not confirmed" in page(stranger.get("/alerts")).words
    assert mails() == []
    price("140.00", minutes=1)
    assert mails() == []
    assert Alert.objects.get().state == "pending"

    stranger.post(link_in(message))
    (told,) = mails()
    assert told.subject == "Ch. Montrose 2016 is $140.00 at Merchant X, below your $160.00"
    assert Alert.objects.get().state == "fired"
    assert "Address not confirmed" not in page(stranger.get("/alerts")).words


def test_an_alert_created_while_the_address_is_being_confirmed_is_looked_at(stranger: Client) -> None:
    """Its first look comes too early; the one that confirming asks for comes after."""
    wine()
    price("150.00")
    sign_up(stranger)
    (message,) = mails()
    alert("160.00", state="pending", owner="dora")
    drain(["alert-matching"])
    stranger.post(link_in(message))
    assert len(mails()) == 1


def test_confirming_wakes_what_waits_and_leaves_the_paused_and_the_met_alone() -> None:
    dora = person("dora", confirmed=False)
    states = {state: alert("100.00", state=state, owner="dora") for state in ("pending", "armed", "fired", "paused")}
    others = alert("100.00", state="pending", owner="alice")
    client = Client()
    client.force_login(dora)
    client.post("/account/address", {"email": DORA, "action_send": "1"})
    (message,) = mails()
    client.post(link_in(message))
    drain(["alert-waking"])
    asked = {m.body["alert_id"] for m in LoggedMessage.objects.filter(type="alert.created")}
    assert asked == {states["pending"].pk, states["armed"].pk}
    drain()
    now = {name: Alert.objects.get(pk=one.pk).state for name, one in states.items()}
    assert now == {"pending": "armed", "armed": "armed", "fired": "fired", "paused": "paused"}
    assert Alert.objects.get(pk=others.pk).state == "pending"


def test_a_mail_decided_on_before_the_address_was_unconfirmed_is_not_sent() -> None:
    alert("160.00")
    price("150.00")
    drain(["alert-matching"])
    EmailAddress.objects.update(verified=False)
    assert mails() == []
    assert not Delivery.objects.exists()


def test_the_link_is_sent_again_but_not_at_once_again() -> None:
    client = Client()
    client.force_login(person("dora", confirmed=False))
    first = client.post("/account/address", {"email": DORA, "action_send": "1"}, follow=True)
    again = client.post("/account/address", {"email": DORA, "action_send": "1"}, follow=True)
    assert f"We sent a link to {DORA}. Open it" in page(first).words
    assert "a moment ago" in page(again).words
    assert len(mails()) == 1


def test_the_link_is_sent_to_ones_own_address_only(alice: User) -> None:
    person("dora", confirmed=False)
    client = Client()
    client.force_login(alice)
    client.post("/account/address", {"email": DORA, "action_send": "1"})
    assert mails() == []
