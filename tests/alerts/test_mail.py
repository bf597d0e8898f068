"""The mail itself, and its delivery."""

import smtplib
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends import locmem

from alerts.mail import compose
from alerts.models import Alert, Notification, Suppression
from jobs.models import DeadLetter, Delivery
from jobs.worker import drain
from tests.cast import alert, merchant, person, price, wine

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def outbox() -> Iterator[None]:
    mail.outbox = []
    return


def only_mail() -> EmailMessage:
    (sent,) = mail.outbox
    parsed = message_from_bytes(sent.message().as_bytes(), policy=policy.default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    assert body is not None
    return str(body.get_content())


def test_the_mail_says_old_and_new_price_target_merchant_time_and_link_in_both_parts(settings: Any) -> None:
    settings.SITE_URL = "https://cellar.example"
    watch = alert("160.00")
    price("189.00")
    event = price("154.00", minutes=1)
    drain()
    message = only_mail()
    assert message["Subject"] == "Ch. Montrose 2016 is $154.00 at Merchant X, below your $160.00"
    assert message["To"] == "alice@winecellar.example"
    for kind in ("plain", "html"):
        text = part(message, kind)
        for fact in ("Ch. Montrose 2016", "$154.00", "$189.00", "18.5 % less", "$160.00", "Merchant X"):
            assert fact in text, (kind, fact)
        assert "14 March 2026, 09:13 UTC" in text
        assert "https://cellar.example/wines/wn_4417" in text
        assert f"https://cellar.example/alerts/{watch.pk}" in text
    assert message["X-Winecellar-Event-ID"] == event.event_id


def test_the_message_id_is_the_same_on_every_try(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = alert("160.00")
    event = price("154.00")
    seen: list[str] = []
    real = locmem.EmailBackend.send_messages

    def fail_once(self: Any, messages: list[EmailMultiAlternatives]) -> int:
        seen.append(messages[0].extra_headers["Message-ID"])
        if len(seen) == 1:
            raise smtplib.SMTPServerDisconnected("gone")
        return int(real(self, messages))

    monkeypatch.setattr(locmem.EmailBackend, "send_messages", fail_once)
    drain()
    assert not mail.outbox
    Delivery.objects.update(visible_at="2026-01-01T00:00:00Z")
    drain()
    assert seen == [f"<alert-{watch.pk}.{event.event_id}@winecellar.example>"] * 2
    assert Notification.objects.get().state == "sent"


def refuse_with(patch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(self: Any, messages: Any) -> int:
        raise error

    patch.setattr(locmem.EmailBackend, "send_messages", refuse)


def test_a_refusal_for_good_is_a_dead_letter_at_once_without_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    alert("160.00")
    price("154.00")
    refuse_with(monkeypatch, smtplib.SMTPDataError(554, b"rejected: alice@winecellar.example"))
    drain()
    letter = DeadLetter.objects.get()
    said = (letter.subscription_name, letter.receive_count, letter.reason)
    assert said == ("notification-delivery", 1, "mail server: 554")
    assert "@" not in letter.reason


def test_an_address_refused_for_good_is_told_to_its_person_and_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not a message that an operator could mend."""
    alert("160.00")
    price("154.00")
    with monkeypatch.context() as patch:
        refuse_with(patch, smtplib.SMTPRecipientsRefused({"a": (550, b"no such user")}))
        drain()
    assert not DeadLetter.objects.exists()
    assert Notification.objects.get().state == "refused"
    assert (Suppression.objects.get().address, Suppression.objects.get().why) == ("alice@winecellar.example", "bounced")
    alert("150.00")
    alert("150.00", owner="bob")
    price("140.00", minutes=1)
    drain()
    assert [message.to for message in mail.outbox] == [["bob@winecellar.example"]]


@pytest.mark.parametrize(
    "error",
    [
        smtplib.SMTPRecipientsRefused({"a": (450, b"busy")}),
        smtplib.SMTPDataError(451, b"later"),
        smtplib.SMTPServerDisconnected(),
        TimeoutError(),
        ConnectionRefusedError(),
    ],
)
def test_what_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    alert("160.00")
    price("154.00")

    def refuse(self: Any, messages: Any) -> int:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(locmem.EmailBackend, "send_messages", refuse)
        drain()
    assert not DeadLetter.objects.exists()
    Delivery.objects.update(visible_at="2026-01-01T00:00:00Z")
    drain()
    assert len(mail.outbox) == 1


@pytest.mark.parametrize("change", ["pause", "delete", "leave"])
def test_a_mail_no_longer_wanted_is_not_sent(change: str) -> None:
    watch = alert("160.00")
    price("154.00")
    drain(["alert-matching"])
    match change:
        case "pause":
            Alert.objects.update(state="paused")
        case "delete":
            watch.delete()
        case "leave":
            type(person()).objects.update(is_active=False)
    drain()
    assert not mail.outbox
    assert not Delivery.objects.exists()
    assert not Notification.objects.exclude(state="unwanted").exists()


def test_names_with_newlines_and_markup_stay_text() -> None:
    bottle = wine("666", name="Evil\r\nBcc: all@example.org <b>Cru</b>")
    alert("160.00", wine=bottle)
    price("154.00", at=merchant("9", "A & Söhne"), of=bottle)
    drain()
    message = only_mail()
    assert message["Bcc"] is None
    assert message["Subject"].strip().startswith("Evil Bcc: all@example.org <b>Cru</b> 2016 is $154.00 at A & Söhne")
    assert "<b>Cru</b>" not in part(message, "html")
    assert "&lt;b&gt;Cru&lt;/b&gt;" in part(message, "html")
    assert "A & Söhne" in part(message, "plain")


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("Ch.\u202eMontrose\u2066", "Ch. Montrose 2016 is $154.00"),  # right to left, isolated
        ("Ch.\u2028Mont\u200brose\x85\x00"[:-1], "Ch. Mont rose 2016 is $154.00"),
        ("Œil de Perdrix 🍷", "Œil de Perdrix 🍷 2016 is $154.00"),
        ("C" * 200, "CCCCCCC"),
        ("葡" * 200, "葡葡葡"),
    ],
)
def test_a_subject_is_one_line_in_one_direction_and_says_the_price_whatever_the_wine_is_called(
    name: str, begins: str
) -> None:
    bottle = wine("666", name=name)
    alert("160.00", wine=bottle)
    price("154.00", of=bottle)
    drain()
    (sent,) = mail.outbox
    assert sent.subject.startswith(begins)
    assert sent.subject.endswith(" is $154.00 at Merchant X, below your $160.00")
    assert len(sent.subject) <= 160
    assert not set(sent.subject) & set("\u202e\u2066\u2028\u200b\x85\r\n\x00")
    raw = sent.message().as_bytes()
    assert max(map(len, raw.splitlines())) <= 998
    assert str(only_mail()["Subject"]).strip() == sent.subject


def test_every_try_of_a_mail_is_the_same_to_the_letter() -> None:
    """A provider that knows the key compares what is sent under it."""
    alert("160.00")
    price("154.00")
    drain(["alert-matching"])
    notification = Notification.objects.select_related("alert__wine", "alert__user").get()
    first, second = compose(notification), compose(notification)
    assert first.extra_headers == second.extra_headers
    assert (first.subject, first.body, first.alternatives) == (second.subject, second.body, second.alternatives)
