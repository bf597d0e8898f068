"""The links that end mails: GET shows, POST acts, undo, nobody signed in; forged ones do nothing."""

import re
from email import message_from_bytes, policy
from typing import Any

import pytest
from django.core import mail, signing
from django.test import Client

from alerts.models import Alert, MailWish, Notification
from alerts.unsubscribe import Scope, Wish, headers, link, read, token
from jobs.worker import drain
from tests.cast import alert, person, price
from tests.pages.html import Page

pytestmark = pytest.mark.django_db(transaction=True)
ONE_CLICK = {"data": "List-Unsubscribe=One-Click", "content_type": "application/x-www-form-urlencoded"}


@pytest.fixture(autouse=True)
def _empty_mailbox() -> None:
    mail.outbox = []


@pytest.fixture
def mailbox() -> Client:
    """A mailbox provider's machine: no cookie, and CSRF checks on."""
    return Client(enforce_csrf_checks=True)


def path(wish: Wish) -> str:
    return f"/unsubscribe/{token(wish)}"


def wish_of(scope: Scope) -> Wish:
    if scope is Scope.ALERT:
        watch = alert("160.00")
        return Wish(scope, watch.user_id, watch.pk)
    return Wish(scope, person().pk)


def is_stopped(wish: Wish) -> bool:
    if wish.scope is Scope.ALERT:
        return Alert.objects.get(pk=wish.alert_id).state == "paused"
    row = MailWish.objects.filter(pk=wish.user_id).first()
    return bool(row and (row.alerts_off_at if wish.scope is Scope.ALERTS else row.digest_off_at))


@pytest.mark.parametrize("scope", Scope)
def test_get_shows_and_changes_nothing_one_click_stops_and_undo_brings_it_back(mailbox: Client, scope: Scope) -> None:
    wish = wish_of(scope)
    for _ in range(2):  # a scanner opens every link
        shown = mailbox.get(path(wish))
        assert (shown.status_code, is_stopped(wish)) == (200, False)
        assert Page(shown.content.decode()).faults == []
    for _ in range(2):
        answer = mailbox.post(path(wish), **ONE_CLICK)
        assert (answer.status_code, is_stopped(wish)) == (200, True)
        assert Page(answer.content.decode()).faults == []
    assert not answer.cookies
    assert "switched off" in mailbox.get(path(wish)).content.decode() or scope is Scope.ALERT
    for _ in range(2):
        assert mailbox.post(path(wish), {"undo": "1"}).status_code == 200
        assert not is_stopped(wish)


def test_a_wish_for_one_thing_leaves_the_others_as_they_are(mailbox: Client) -> None:
    mailbox.post(path(wish_of(Scope.DIGEST)), **ONE_CLICK)
    assert not is_stopped(wish_of(Scope.ALERTS))
    mailbox.post(path(wish_of(Scope.ALERTS)), **ONE_CLICK)
    mailbox.post(path(wish_of(Scope.DIGEST)), {"undo": "1"})
    assert is_stopped(wish_of(Scope.ALERTS))


def test_who_called_off_alert_mail_gets_none_and_others_do(mailbox: Client) -> None:
    alert("160.00")
    alert("160.00", owner="bob")
    price("154.00")
    drain(["alert-matching"])
    mailbox.post(path(wish_of(Scope.ALERTS)), **ONE_CLICK)  # after it was decided on, before it is sent
    drain()
    assert [message.to for message in mail.outbox] == [["bob@winecellar.example"]]
    assert sorted(Notification.objects.values_list("state", flat=True)) == ["sent", "unwanted"]


def test_the_mail_carries_the_headers_of_rfc_8058_and_both_links_in_both_parts(mailbox: Client) -> None:
    watch = alert("160.00")
    price("154.00")
    drain()
    (sent,) = mail.outbox
    one, everything = Wish(Scope.ALERT, watch.user_id, watch.pk), Wish(Scope.ALERTS, watch.user_id)
    raw = sent.message().as_bytes()
    assert sent.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    (url,) = re.findall(r"^<(.+)>$", sent.extra_headers["List-Unsubscribe"])
    assert url == link(one)
    on_the_wire = message_from_bytes(raw, policy=policy.default)
    assert on_the_wire["List-Unsubscribe"].strip() == f"<{url}>"
    assert b"=?" not in raw.partition(b"List-Unsubscribe")[2].partition(b"\n--")[0], "mailboxes read no encoded words"
    assert max(map(len, raw.splitlines())) <= 998
    ((html, _),) = sent.alternatives  # type: ignore[attr-defined]
    for part in (str(sent.body), html):
        assert link(one) in part
        assert link(everything) in part
    assert mailbox.post(url.partition("8000")[2], **ONE_CLICK).status_code == 200
    assert Alert.objects.get().state == "paused"


def test_the_same_wish_is_the_same_link_for_ever() -> None:
    """A provider that knows the mail's key compares what is sent under it."""
    wish = Wish(Scope.ALERT, 12, 345)
    assert token(wish) == token(wish)
    assert headers(wish) == headers(wish)
    assert [read(token(each)) for each in (wish, Wish(Scope.ALERTS, 12), Wish(Scope.DIGEST, 12))] == [
        wish,
        Wish(Scope.ALERTS, 12),
        Wish(Scope.DIGEST, 12),
    ]


def test_a_link_goes_on_working_while_its_key_is_among_the_former_ones(settings: Any) -> None:
    made = token(Wish(Scope.ALERTS, 12))
    former, settings.SECRET_KEY = settings.SECRET_KEY, "n" * 50
    assert read(made) is None
    settings.SECRET_KEY_FALLBACKS = [former]
    assert read(made) == Wish(Scope.ALERTS, 12)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda key: key.replace("alerts-", "digest-"),
        lambda key: key[:-1],
        lambda key: key + "x",
        lambda key: key.partition(".")[0],
        lambda key: signing.dumps({"user": 1}),
        lambda key: signing.Signer(salt="another purpose", sep=".").sign(key.rpartition(".")[0]),
        lambda key: signing.Signer(salt="alerts.unsubscribe", sep=".").sign("alerts-" + "9" * 30),
        lambda key: "x\x00",
        lambda key: "%ff",
    ],
)
def test_a_link_that_is_not_ours_says_so_and_does_nothing(mailbox: Client, tamper: Any) -> None:
    key = tamper(token(wish_of(Scope.ALERTS)))
    for answer in (mailbox.get(f"/unsubscribe/{key}"), mailbox.post(f"/unsubscribe/{key}", **ONE_CLICK)):
        assert answer.status_code in {400, 404}
    assert "This link does not work" in mailbox.get("/unsubscribe/alerts-1.cut").content.decode()
    assert not MailWish.objects.exists()


def test_links_of_what_is_gone_say_so_alike(mailbox: Client) -> None:
    """Also an alert that is another person's by now cannot be: its id is signed with its owner's."""
    watch = alert("160.00")
    gone = [Wish(Scope.ALERT, watch.user_id, watch.pk), Wish(Scope.ALERT, person("bob").pk, watch.pk)]
    assert mailbox.post(path(gone[1]), **ONE_CLICK).status_code == 200
    watch.refresh_from_db()
    assert watch.state == "armed"
    watch.delete()
    nobody = Wish(Scope.ALERTS, 999_999)
    answers = [mailbox.post(path(wish), **ONE_CLICK) for wish in (*gone, nobody)]
    assert {answer.status_code for answer in answers} == {200}
    assert all("There is nothing for you to do" in answer.content.decode() for answer in answers)
    assert not MailWish.objects.exists()
