"""What the provider reports about addresses: who may say it, what follows, how it ends."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from alerts.models import Suppression
from jobs.standard_webhooks import Signed, read_secret, sign
from jobs.worker import drain
from tests.cast import alert, person, price
from tests.pages.html import Page

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "whsec_" + base64.b64encode(b"s" * 24).decode()
BASIC = "postmark:a-long-password"


@pytest.fixture(autouse=True)
def _resend(settings: Any) -> Iterator[None]:
    mail.outbox = []
    settings.EMAIL_BACKEND = "jobs.mail.backends.ResendBackend"
    settings.MAIL_WEBHOOK_SECRET = SECRET
    return


def report(
    kind: str = "email.bounced",
    *,
    to: str = "alice@winecellar.example",
    bounce: str | None = "Permanent",
    id: str = "msg_1",
    ago: timedelta = timedelta(0),
    secret: str = SECRET,
    body: bytes | None = None,
    signed_ago: timedelta = timedelta(0),
) -> Any:
    """Resend's report, signed as Resend signs."""
    data: dict[str, Any] = {"email_id": "e1", "to": [to]}
    if bounce:
        data["bounce"] = {"message": "The recipient's email provider sent a hard bounce message.", "type": bounce}
    document = {"type": kind, "created_at": (timezone.now() - ago).isoformat(), "data": data}
    body = json.dumps(document).encode() if body is None else body
    at = str(int((timezone.now() - signed_ago).timestamp()))
    signature = sign(read_secret(secret), Signed(id, at, ""), body)
    return Client(enforce_csrf_checks=True).post(
        "/mail/reports/resend",
        body,
        "application/json",
        headers={"svix-id": id, "svix-timestamp": at, "svix-signature": signature},
    )


def suppressed() -> list[tuple[str, str]]:
    return list(Suppression.objects.filter(lifted_at=None).values_list("address", "why"))


@pytest.fixture
def as_alice() -> Client:
    browser = Client()
    browser.force_login(person())
    return browser


@pytest.mark.parametrize(
    ("kind", "bounce", "why"),
    [
        ("email.bounced", "Permanent", "bounced"),
        ("email.bounced", None, None),  # says nothing of why: anymail calls it bounced, and so do we
        ("email.bounced", "Transient", None),
        ("email.bounced", "Undetermined", None),
        ("email.complained", None, "complained"),
        ("email.delivered", None, None),
        ("email.delivery_delayed", None, None),
        ("email.opened", None, None),
        ("something.new", None, None),
    ],
)
def test_bounces_for_good_and_complaints_stop_the_mail_and_nothing_else_does(
    kind: str, bounce: str | None, why: str | None
) -> None:
    person()
    assert report(kind, bounce=bounce).status_code == 200
    expected = why or ("bounced" if (kind, bounce) == ("email.bounced", None) else None)
    assert suppressed() == ([("alice@winecellar.example", expected)] if expected else [])


def test_no_mail_goes_to_a_suppressed_address_and_it_does_again_once_the_person_says_so(
    settings: Any, as_alice: Client
) -> None:
    assert report(to="Alice@Winecellar.example").status_code == 200
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    alert("160.00")
    alert("160.00", owner="bob")
    price("154.00")
    drain()
    assert [message.to for message in mail.outbox] == [["bob@winecellar.example"]]
    for page in ("/account", "/alerts"):
        shown = as_alice.get(page).content.decode()
        assert "No mail goes to alice@winecellar.example: mail came back from there" in shown
        assert Page(shown).faults == []
    answer = as_alice.post("/account/address/works", follow=True)
    assert "Mail goes to alice@winecellar.example again." in answer.content.decode()
    alert("150.00")
    price("149.00", minutes=1)
    drain()
    assert [message.to for message in mail.outbox[1:]] == [["alice@winecellar.example"]]


def test_a_change_of_address_ends_it(settings: Any) -> None:
    watch = alert("160.00")
    report()
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    type(watch.user).objects.filter(pk=watch.user_id).update(email="alice@elsewhere.example")
    price("154.00")
    drain()
    assert [message.to for message in mail.outbox] == [["alice@elsewhere.example"]]


def test_the_same_report_again_and_one_from_before_do_not_undo_the_persons_word(as_alice: Client) -> None:
    report(id="msg_1")
    as_alice.post("/account/address/works")
    report(id="msg_1", signed_ago=timedelta(0))
    report(id="msg_2", ago=timedelta(hours=1))
    assert suppressed() == []
    report(id="msg_3", ago=timedelta(seconds=-1))
    assert suppressed() == [("alice@winecellar.example", "bounced")]
    answer = as_alice.post("/account/address/works", follow=True)
    assert "You said so less than a day ago" in answer.content.decode()
    assert len(suppressed()) == 1


def test_nobodys_address_is_no_news_and_no_row() -> None:
    assert report(to="stranger@winecellar.example").status_code == 200
    assert report(to="x" * 400).status_code == 200
    assert report(to="a\x00b@winecellar.example").status_code == 200
    assert not Suppression.objects.exists()


@pytest.mark.parametrize(
    "forged",
    [
        {"secret": "whsec_" + base64.b64encode(b"x" * 24).decode()},
        {"signed_ago": timedelta(minutes=6)},
        {"signed_ago": timedelta(minutes=-6)},
    ],
)
def test_a_report_that_is_not_the_providers_or_is_old_is_a_401_and_changes_nothing(forged: Any) -> None:
    person()
    assert report(**forged).status_code == 401
    assert not Suppression.objects.exists()


def test_a_report_without_a_signature_or_about_another_provider_changes_nothing(settings: Any) -> None:
    person()
    assert Client().post("/mail/reports/resend", b"{}", "application/json").status_code == 401
    assert Client().get("/mail/reports/resend").status_code == 405
    assert Client().post("/mail/reports/postmark", b"{}", "application/json").status_code == 404
    settings.MAIL_WEBHOOK_SECRET = ""
    assert report().status_code == 404
    assert not Suppression.objects.exists()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b"\xff", b'{"type": 7}', b'{"type": "email.bounced", "data": []}']
)
def test_a_report_that_cannot_be_read_is_a_400_or_nothing_and_never_our_failure(body: bytes) -> None:
    assert report(body=body).status_code in {200, 400}
    assert not Suppression.objects.exists()


@pytest.mark.parametrize(
    ("kind", "stops"),
    [
        ("HardBounce", True),
        ("BadEmailAddress", True),
        ("SoftBounce", False),
        ("Transient", False),
        ("SpamComplaint", True),
    ],
)
def test_postmark_is_known_by_its_password_and_soft_bounces_are_soft(settings: Any, kind: str, stops: bool) -> None:
    """Anymail calls Postmark's soft bounces bounced, too."""
    settings.EMAIL_BACKEND = "jobs.mail.backends.PostmarkBackend"
    settings.MAIL_WEBHOOK_SECRET = BASIC
    person()
    record = "SpamComplaint" if kind == "SpamComplaint" else "Bounce"
    body = {
        "RecordType": record,
        "Type": kind,
        "ID": 7,
        "Email": "alice@winecellar.example",
        "BouncedAt": "2026-03-14T09:12:04Z",
    }

    def post(who: str) -> int:
        headers = {"Authorization": f"Basic {base64.b64encode(who.encode()).decode()}"}
        return int(
            Client().post("/mail/reports/postmark", json.dumps(body), "application/json", headers=headers).status_code
        )

    assert post("postmark:guess") == 401
    assert not Suppression.objects.exists()
    assert post(BASIC) == 200
    assert bool(suppressed()) is stops
