"""The journey of one price, for whoever is asked “where is it?”: on the page, by all it may be known by."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alerts.channels import services
from alerts.channels.models import Channel
from alerts.mail import message_id
from alerts.models import Alert, Decision, Notification
from jobs.journey import selectors
from jobs.models import Delivery
from jobs.worker import drain
from tests.alerts.receiver import answers, receiving
from tests.cast import NOW, alert, person, price, wine, with_app
from tests.flows.test_price_to_mail import Shop
from winecellar.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)
FIND = "/admin/jobs/journey/"


def staff(*may: str) -> Client:
    person = User.objects.create_user(f"{'-'.join(may) or 'dora'}@winecellar.example", "claret-and-port", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(content_type__app_label="jobs", codename__in=may))
    client = Client()
    client.force_login(with_app(person))
    return client


def page(client: Client, text: str) -> str:
    answer = client.get(FIND, {"q": text}, follow=True)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


@pytest.fixture
def told() -> tuple[str, Notification]:
    """A price that became a mail; the event and the mail."""
    mail.outbox = []
    wine()
    alert("160.00")
    shop = Shop()
    answer = shop.post(
        {"wine_id": "wn_4417", "price": "154.00", "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z"},
        key="their-request-77",
    ).json()
    drain()
    return answer["event_ids"][0], Notification.objects.get()


def test_the_page_tells_of_merchant_raw_body_consumers_decision_and_mail(told: tuple[str, Notification]) -> None:
    event_id, sent = told
    text = page(staff("view_journey"), event_id)
    for words in (
        "wine.price_changed",
        "Merchant X",
        "Ch. Montrose 2016",
        "price-changes, ",
        "their-request-77",
        f"alert {sent.alert_id}: 154.00 at Merchant X",
        "handed to the mail server",
        "send_alert_email",
        "notification-delivery",
        "What is not told here",
    ):
        assert words in text, words
    assert "alice@" not in text, "whose alert it is does not belong here"
    assert re.search(r"price-history\s*<span[^>]*>acked", text)
    assert "<script" not in re.sub(r'<script src="[^"]*"( defer)?></script>', "", text)


def test_it_is_found_by_all_that_somebody_may_have_in_hand(told: tuple[str, Notification]) -> None:
    event_id, sent = told
    for text in (event_id, "wn_4417", "their-request-77", f"mail {sent.pk}", f"#{sent.pk}", message_id(sent)):
        assert [found.event_id for found in selectors.find(text)] == [event_id], text
    client = staff("view_journey")
    assert client.get(FIND, {"q": "their-request-77"})["Location"].startswith(f"{FIND}evt_5F")
    assert "Nothing is known of nonsense" in page(client, "nonsense")
    assert "at most 300 characters" in page(client, "x" * 400)


def test_who_may_not_see_journeys_sees_none(told: tuple[str, Notification]) -> None:
    event_id, sent = told
    dora = staff()
    for address in (FIND, f"{FIND}?q={event_id}", f"{FIND}{event_id}/change/"):
        assert dora.get(address).status_code == 403
        assert Client().get(address).status_code == 302
    alice = Client()
    alice.force_login(sent.alert.user)
    assert "Journey" not in alice.get(f"/alerts/{sent.alert_id}").content.decode()
    assert alice.get(f"{FIND}{event_id}/change/").status_code in (302, 403)


def test_staff_come_to_it_from_an_alerts_log_of_their_own() -> None:
    mail.outbox = []
    wine()
    client = staff("view_journey")
    one = alert("160.00")
    Alert.objects.filter(pk=one.pk).update(user=User.objects.get(is_staff=True))
    event = price("154.00")
    Decision.objects.create(alert=one, event_id=event.event_id, outcome="not_mailed", reason="only 1 % lower")
    assert f"{FIND}?q={event.event_id}" in client.get(f"/alerts/{one.pk}").content.decode()


def test_an_event_that_moved_many_alerts_costs_the_page_the_same_queries(settings: Any) -> None:
    settings.JOURNEY_SHOWN = 10
    client = staff("view_journey", "view_deadletter")
    counts = []
    for number, watchers in enumerate((1, 30)):
        bottle = wine(f"9{number}")
        for watcher in range(watchers):
            alert("160.00", wine=bottle, owner=f"watcher{watcher}")
        event = price("154.00", of=bottle)
        drain(["alert-matching", "price-history"])
        with CaptureQueriesContext(connection) as captured:
            text = client.get(f"{FIND}{event.event_id}/change/").content.decode()
        counts.append(len(captured))
        assert any("alerts_decision" in each["sql"] and "LIMIT 11" in each["sql"] for each in captured)
    assert counts[0] == counts[1] <= 25
    assert "There are more than are shown here" in text
    assert "30 messages; the first 10 are shown" in text


def test_a_post_that_was_tried_again_is_told_with_the_price_it_is_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail.outbox = []
    with receiving(tmp_path, monkeypatch) as receiver:
        services.add_webhook(user_id=person("alice").pk, url=receiver.url, now=NOW)
        receiver.then(answers(500), answers(200))
        alert("160.00")
        event = price("154.00")
        drain()
        Channel.objects.update(retry_at=None)
        Delivery.objects.update(visible_at="2026-01-01T00:00:00Z")
        drain()
    found = selectors.journey(event.event_id)
    assert found is not None
    posts = [leg for leg in found.follow_ups if leg.type == "deliver_to_channel"]
    assert len(posts) == 2, "each try is a command of its own"
    (section,) = [section for section in found.sections if section.title == "Posts"]
    assert "taken after 2 tries; the last: answered 200" in section.notes[-1].what
