"""Addresses that take no mail, other sides that are away, and people's channels, as the staff see them."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from alerts import suppressions
from alerts.channels import services
from alerts.channels.models import Channel
from alerts.models import Suppression
from jobs.models import Breaker
from tests.cast import NOW, person, with_app
from winecellar.accounts.models import User

pytestmark = pytest.mark.django_db
LOOK = ("view_suppression", "view_breaker", "view_channel", "view_channeldelivery")


def staff(*may: str) -> Client:
    name = f"{'-'.join(may) or 'dora'}@winecellar.example"
    someone = User.objects.create_user(name, "claret-and-port", is_staff=True)
    someone.user_permissions.set(Permission.objects.filter(codename__in=[*LOOK, *may]))
    client = Client()
    client.force_login(with_app(someone))
    return client


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


@pytest.fixture
def bounced(db: None) -> Suppression:
    suppressions.suppress(address=person("alice").email, why=Suppression.Why.BOUNCED, at=timezone.now())
    return Suppression.objects.get()


def lift(client: Client, known: Suppression, **given: str) -> Any:
    return client.post(f"/admin/alerts/suppression/{known.pk}/lift/", given, follow=True)


def test_an_address_that_takes_no_mail_is_lifted_with_a_reason_that_stays(bounced: Suppression) -> None:
    client = staff("change_suppression")
    assert bounced.address in page(client, "/admin/alerts/suppression/?state=holds")
    assert "This field is required" in lift(client, bounced, reason=" ").content.decode()
    assert suppressions.suppression_of(bounced.user) is not None
    answer = lift(client, bounced, reason="she mended her mailbox").content.decode()
    assert f"Mail goes to {bounced.address} again." in answer
    assert "Lift: send" not in answer
    assert suppressions.suppression_of(bounced.user) is None
    assert "she mended her mailbox" in LogEntry.objects.get().change_message
    assert "she mended her mailbox" in page(client, f"/admin/alerts/suppression/{bounced.pk}/history/")
    assert "lifted already" in lift(client, bounced, reason="again").content.decode()
    assert LogEntry.objects.count() == 1
    assert bounced.address not in page(client, "/admin/alerts/suppression/?state=holds")


def test_who_may_only_look_is_not_offered_to_lift_and_cannot(bounced: Suppression) -> None:
    dora = staff()
    assert "Lift: send" not in page(dora, f"/admin/alerts/suppression/{bounced.pk}/change/")
    assert lift(dora, bounced, reason="forged").status_code == 403
    assert suppressions.suppression_of(bounced.user) is not None
    client = staff("change_suppression")
    assert client.get(f"/admin/alerts/suppression/{bounced.pk}/lift/").status_code == 403, "by a button only"
    assert client.post("/admin/alerts/suppression/999999/lift/", {"reason": "x"}).status_code == 404


def test_mail_that_comes_back_after_it_was_lifted_suppresses_the_address_again(bounced: Suppression) -> None:
    lift(staff("change_suppression"), bounced, reason="she mended her mailbox")
    assert suppressions.suppress(address=bounced.address, why=Suppression.Why.BOUNCED, at=timezone.now())
    assert suppressions.suppression_of(bounced.user) is not None


def test_another_side_that_is_away_is_seen_and_tried_again_by_those_who_may() -> None:
    now = timezone.now()
    Breaker.objects.create(name="mail", failed=5, opened_at=now, probe_at=now, last_failed_at=now, reason="401 no key")
    retry = {"action": "retry", "_selected_action": "mail"}
    dora, client = staff(), staff("change_breaker")
    shown = page(dora, "/admin/jobs/breaker/")
    assert "away: nothing is sent until the next probe" in shown
    assert "401 no key" in shown
    assert "Try it again" not in shown
    dora.post("/admin/jobs/breaker/", retry)
    assert Breaker.objects.get().opened_at is not None
    answer = client.post("/admin/jobs/breaker/", retry, follow=True).content.decode()
    assert "Mail: everything that waits is tried again." in answer
    assert Breaker.objects.get().opened_at is None
    assert "Mail is not away." in client.post("/admin/jobs/breaker/", retry, follow=True).content.decode()


def test_a_channel_is_shown_without_what_would_let_its_reader_post_to_it() -> None:
    url = "https://hooks.example.com/services/T0/B1/unguessable"
    channel, secret = services.add_webhook(user_id=person("alice").pk, url=url, now=NOW)
    services.rotate_secret(channel=channel, now=NOW)
    stored = Channel.objects.get()
    dora = staff()
    shown = page(dora, "/admin/alerts/channel/") + page(dora, f"/admin/alerts/channel/{channel.pk}/change/")
    assert "hooks.example.com" in shown
    assert "a secret that only its owner has" in shown
    for kept in ("unguessable", secret, stored.sealed_address, stored.sealed_secret, stored.sealed_old_secret):
        assert kept not in shown
    assert dora.post(f"/admin/alerts/channel/{channel.pk}/change/", {"shown": "x"}).status_code == 403
    assert dora.post(f"/admin/alerts/channel/{channel.pk}/delete/", {"post": "yes"}).status_code == 403
