"""Mails about accounts on their way: retried as one mail, buried without an address, apart from the alerts'."""

import smtplib
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends import locmem
from django.db import transaction
from django.test import Client
from django.utils import timezone

from jobs.messages import NewMessage
from jobs.models import DeadLetter, Delivery
from jobs.outbox import publish
from jobs.worker import drain
from tests.accounts.conftest import mails
from tests.cast import alert, price
from winecellar.accounts.models import AccountMail, User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_retry_by_itself(settings: Any) -> None:
    settings.RETRY_BACKOFF_BASE = timedelta(hours=10)
    mail.outbox = []


def sign_up(email: str = "dora@winecellar.example") -> Any:
    return Client().post("/sign-up", {"email": email, "password1": "claret-and-port"})


def refuse(patch: pytest.MonkeyPatch, error: Exception, *, to: str = "dora@winecellar.example") -> list[str]:
    """The mail server's answer for one recipient; the Message-IDs it has seen."""
    seen: list[str] = []
    real = locmem.EmailBackend.send_messages

    def send(backend: Any, messages: Any) -> int:
        if messages[0].to == [to]:
            seen.append(messages[0].extra_headers["Message-ID"])
            raise error
        return int(real(backend, messages))

    patch.setattr(locmem.EmailBackend, "send_messages", send)
    return seen


def test_a_brownout_of_the_mail_server_stops_neither_the_page_nor_the_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        refuse(patch, TimeoutError())
        assert sign_up().status_code == 302
        alert("160.00")
        price("150.00")
        drain()
        assert [message.to for message in mail.outbox] == [["alice@winecellar.example"]]
    assert User.objects.filter(email="dora@winecellar.example").exists()
    assert not DeadLetter.objects.exists()
    Delivery.objects.update(visible_at=timezone.now() - timedelta(seconds=1))
    assert [message.subject for message in mails()] == ["Confirm your address"]


def test_each_try_of_a_mail_is_the_same_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = refuse(monkeypatch, smtplib.SMTPServerDisconnected())
    sign_up()
    pk = AccountMail.objects.get().pk
    for _ in range(3):
        drain()
        Delivery.objects.update(visible_at=timezone.now() - timedelta(seconds=1))
    assert seen == [f"<account-{pk}@winecellar.example>"] * 3


def test_a_refusal_for_good_is_a_dead_letter_that_names_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, smtplib.SMTPRecipientsRefused({"dora@winecellar.example": (550, b"no such user")}))
    sign_up()
    drain()
    letter = DeadLetter.objects.get()
    assert (letter.subscription_name, letter.reason) == ("account-mail", "recipient refused: 550")
    assert "@" not in f"{letter.reason}{letter.body}"


def test_a_mail_sealed_with_a_key_that_is_gone_is_a_dead_letter_and_its_neighbours_are_sent(settings: Any) -> None:
    sign_up("one@winecellar.example")
    key, settings.SECRET_KEY = settings.SECRET_KEY, "n" * 50
    sign_up("two@winecellar.example")
    settings.SECRET_KEY = key
    assert [message.to for message in mails()] == [["one@winecellar.example"]]
    assert DeadLetter.objects.get().reason == "sealed with a SECRET_KEY that is no longer ours"


@pytest.mark.publishes_malformed_events
@pytest.mark.parametrize(
    ("command", "subscription", "reason"),
    [
        ("send_account_email", "account-mail", "account_mail_id required"),
        ("user.address_confirmed", "alert-waking", "user_id required"),
    ],
)
def test_a_message_that_says_nothing_is_a_dead_letter_at_once(command: str, subscription: str, reason: str) -> None:
    with transaction.atomic():
        publish([NewMessage(type=command, key="k", body={"account_mail_id": "7", "user_id": None})])
    drain()
    letter = DeadLetter.objects.get()
    assert (letter.subscription_name, letter.reason, letter.receive_count) == (subscription, reason, 1)


def test_a_command_whose_mail_was_sent_is_done(alice: User) -> None:
    sign_up()
    pk = AccountMail.objects.get().pk
    assert len(mails()) == 1
    with transaction.atomic():
        publish([NewMessage(type="send_account_email", key="k", body={"account_mail_id": pk})])
    assert mails() == []
    assert not Delivery.objects.exists()


def test_both_parts_say_the_same_and_have_the_link() -> None:
    sign_up()
    (message,) = mails()
    ((html, kind),) = message.alternatives  # type: ignore[attr-defined]
    assert kind == "text/html"
    (link,) = [word for word in str(message.body).split() if word.startswith("http")]
    assert f'href="{link}"' in html
    assert "The link works once, within 3 days." in str(message.body)
    assert "The link works once, within 3 days." in html
    assert message.extra_headers["Auto-Submitted"] == "auto-generated"
