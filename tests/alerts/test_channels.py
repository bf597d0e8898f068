"""Notifications on webhooks: from the price to the receiver, through the real worker and a real TLS server."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from alerts.channels import fan_out, services
from alerts.channels.models import Channel, ChannelDelivery
from alerts.models import Notification
from jobs import standard_webhooks
from jobs.messages import NewMessage
from jobs.models import DeadLetter, Delivery, LoggedMessage
from jobs.outbox import publish
from jobs.worker import drain
from tests.alerts.receiver import Receiver, answers, receiving
from tests.cast import NOW, alert, person, price, wine

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving(tmp_path, monkeypatch) as there:
        yield there


def webhook(receiver: Receiver, *, owner: str = "alice", path: str = "") -> tuple[Channel, str]:
    return services.add_webhook(user_id=person(owner).pk, url=receiver.url + path, now=NOW)


def let_waits_pass() -> None:
    Channel.objects.filter(retry_at__isnull=False).update(retry_at=timezone.now() - timedelta(seconds=1))
    Delivery.objects.update(visible_at="2026-01-01T00:00:00Z")


def fan_out_to(told: list[Notification]) -> int:
    """As matching does after it has made them."""
    alerts: dict[str, list[int]] = {}
    for note in told:
        alerts.setdefault(note.event_id, []).append(note.alert_id)
    events = {note.pk: note.event_id for note in told}
    return fan_out.finish(fan_out.begin(alerts), told=events, attributes={event: {} for event in alerts})


def only() -> ChannelDelivery:
    return ChannelDelivery.objects.get()


def test_a_notification_arrives_as_a_signed_cloud_event_beside_its_mail(receiver: Receiver, settings: Any) -> None:
    settings.SITE_URL = "https://cellar.example"
    channel, secret = webhook(receiver)
    watch = alert("160.00")
    price("189.00")
    event = price("154.00", minutes=1)
    drain()
    ((_, headers, body),) = receiver.requests
    assert headers["content-type"] == "application/cloudevents+json"
    signed = standard_webhooks.Signed(headers["webhook-id"], headers["webhook-timestamp"], headers["webhook-signature"])
    standard_webhooks.check_signature(signed, body, secrets=[standard_webhooks.read_secret(secret)])
    standard_webhooks.check_timestamp(signed, now=datetime.now(UTC), tolerance=timedelta(minutes=1))
    told = json.loads(body)
    assert headers["webhook-id"] == told["id"] == f"{event.event_id}.{watch.pk}.{channel.pk}"
    assert (told["specversion"], told["type"]) == ("1.0", "winecellar.alert.notified")
    assert told["data"]["message"] == "Ch. Montrose 2016 is $154.00 at Merchant X, below your $160.00"
    assert b'"new_price":154.00' in body
    assert told["data"]["alert_url"] == f"https://cellar.example/alerts/{watch.pk}"
    assert (only().state, only().tries, len(mail.outbox)) == ("taken", 1, 1)
    channel.refresh_from_db()
    assert channel.told_at is not None


def test_there_is_one_delivery_for_each_alert_event_and_channel_by_the_schema(receiver: Receiver) -> None:
    channel, _ = webhook(receiver)
    alert("160.00")
    price("154.00")
    drain(["alert-matching"])
    told = Notification.objects.get()
    with transaction.atomic():
        assert fan_out_to([told]) == 0
    with pytest.raises(IntegrityError), transaction.atomic():
        ChannelDelivery.objects.create(channel=channel, notification=told)
    drain()
    assert len(receiver.requests) == 1


def test_the_deliveries_and_the_notification_are_committed_together(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook(receiver)
    alert("160.00")
    price("154.00")

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("after the notifications")

    with monkeypatch.context() as patch:
        patch.setattr(fan_out, "finish", fail)
        drain(["alert-matching"])
    assert not Notification.objects.exists()
    assert not LoggedMessage.objects.filter(type="send_alert_email").exists()


def test_fanning_out_is_one_statement_however_many_are_told_and_none_more_without_channels(receiver: Receiver) -> None:
    def told(count: int) -> list[Notification]:
        Notification.objects.all().delete()
        watch = [alert("160.00", owner=f"p{n}") for n in range(count)]
        return Notification.objects.bulk_create(
            Notification(
                alert=each,
                event_id="evt_1",
                new_price="1",
                target="2",
                merchant_name="m",
                occurred_at=NOW,
            )
            for each in watch
        )

    def queries(rows: list[Notification]) -> int:
        with (
            transaction.atomic(),
            CaptureQueriesContext(
                connection,
            ) as caught,
        ):
            fan_out_to(rows)
        return len(caught)

    few = told(2)
    assert queries(few) == 1
    for number in range(2):
        services.add_webhook(user_id=few[0].alert.user_id, url=f"{receiver.url}{number}", now=NOW)
    some = queries(told(2))
    assert ChannelDelivery.objects.count() == 2
    assert queries(told(30)) == some


def test_a_receiver_that_fails_is_tried_again_under_the_same_id_and_is_no_dead_letter(receiver: Receiver) -> None:
    receiver.then(answers(500), answers(503), answers(200))
    webhook(receiver)
    alert("160.00")
    price("154.00")
    drain()
    assert (only().state, only().tries, only().answer) == ("queued", 1, "answered 500")
    drain()
    assert len(receiver.requests) == 1  # not before its time
    for _ in range(2):
        let_waits_pass()
        drain()
    assert (only().state, only().tries, only().answer) == ("taken", 3, "answered 200")
    assert len({headers["webhook-id"] for _, headers, _ in receiver.requests}) == 1
    assert len({body for *_, body in receiver.requests}) == 1
    assert not DeadLetter.objects.exists()


def test_a_receiver_that_never_takes_anything_is_switched_off_after_so_many_and_says_so(
    receiver: Receiver, settings: Any
) -> None:
    settings.CHANNEL_RETRY_DELAYS = (timedelta(seconds=10),)
    settings.CHANNEL_GIVE_UPS = 2
    receiver.then(answers(500))
    channel, _ = webhook(receiver)
    for number in range(2):
        alert("160.00", wine=wine(str(number)))
        price("154.00", of=wine(str(number)))
        for _ in range(2):
            drain()
            let_waits_pass()
    channel.refresh_from_db()
    assert [d.state for d in ChannelDelivery.objects.order_by("pk")] == ["given_up", "given_up"]
    assert channel.off_at is not None
    assert channel.off_because == "It did not take 2 notifications in a row. The last time: answered 500"
    assert not DeadLetter.objects.exists()
    seen = len(receiver.requests)
    alert("160.00", wine=wine("9"))
    price("154.00", of=wine("9"))
    drain()
    assert len(receiver.requests) == seen
    services.switch_on(channel=channel)
    receiver.then(answers(200))
    price("170.00", of=wine("9"), minutes=1)
    price("150.00", of=wine("9"), minutes=2)
    drain()
    assert ChannelDelivery.objects.latest("pk").state == "taken"


def test_410_switches_off_at_once_and_what_waits_is_not_sent(receiver: Receiver) -> None:
    receiver.then(answers(410))
    channel, _ = webhook(receiver)
    alert("160.00")
    price("154.00")
    drain()
    channel.refresh_from_db()
    assert (only().state, channel.off_because) == ("given_up", "The receiver answered 410: it wants nothing more.")


def test_while_a_channel_rests_the_next_notification_waits_without_a_try(receiver: Receiver) -> None:
    receiver.then(answers(500), answers(200))
    webhook(receiver)
    for number in range(3):
        alert("160.00", wine=wine(str(number)))
    price("154.00", of=wine("0"))
    drain()
    price("154.00", of=wine("1"))
    price("154.00", of=wine("2"))
    drain()
    assert len(receiver.requests) == 1
    assert sorted(ChannelDelivery.objects.values_list("tries", flat=True)) == [0, 0, 1]
    for _ in range(2):
        let_waits_pass()
        drain()
    assert {d.state for d in ChannelDelivery.objects.all()} == {"taken"}
    assert len(receiver.requests) == 4


@pytest.mark.parametrize("change", ["off", "remove", "leave", "erase alert"])
def test_what_is_no_longer_wanted_is_not_posted(receiver: Receiver, change: str) -> None:
    channel, _ = webhook(receiver)
    watch = alert("160.00")
    price("154.00")
    drain(["alert-matching"])
    match change:
        case "off":
            services.switch_off(channel=channel, now=NOW)
        case "remove":
            services.remove(channel=channel)
        case "leave":
            type(person()).objects.update(is_active=False)
        case "erase alert":
            watch.delete()
    drain()
    assert not receiver.requests
    assert not Delivery.objects.exists()
    assert not ChannelDelivery.objects.exclude(state="unwanted").exists()


def test_a_redelivery_after_the_post_posts_under_the_same_id_and_settles_once(receiver: Receiver) -> None:
    """The window that remains, as for mail: posted, and not yet written."""
    channel, _ = webhook(receiver)
    alert("160.00")
    price("154.00")
    drain(["alert-matching"])
    with transaction.atomic():
        publish(
            [NewMessage("deliver_to_channel", "again", {"channel_delivery_id": only().pk, "channel_id": channel.pk})]
        )
    drain()
    assert len({headers["webhook-id"] for _, headers, _ in receiver.requests}) == 1
    assert (only().state, only().tries) == ("taken", 1)


def test_a_private_address_is_refused_at_the_post_even_if_it_was_public_when_added(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.alerts.receiver import resolve_to

    webhook(receiver)
    resolve_to(monkeypatch, "10.0.0.7")
    alert("160.00")
    price("154.00")
    drain()
    assert not receiver.connections
    assert (only().state, only().answer) == ("queued", "The address is not on the public internet.")


def test_while_a_secret_is_replaced_both_sign_and_then_the_new_one_alone(receiver: Receiver) -> None:
    channel, old = webhook(receiver)
    new = services.rotate_secret(channel=channel, now=timezone.now())
    alert("160.00")
    price("154.00")
    drain()
    Channel.objects.update(old_secret_until=timezone.now() - timedelta(seconds=1))
    alert("160.00", wine=wine("2"))
    price("154.00", of=wine("2"))
    drain()

    def fits(secret: str, request: tuple[str, dict[str, str], bytes]) -> bool:
        _, headers, body = request
        signed = standard_webhooks.Signed(
            headers["webhook-id"], headers["webhook-timestamp"], headers["webhook-signature"]
        )
        try:
            standard_webhooks.check_signature(signed, body, secrets=[standard_webhooks.read_secret(secret)])
        except standard_webhooks.SignatureError:
            return False
        return True

    during, after = receiver.requests
    assert [fits(old, during), fits(new, during), fits(old, after), fits(new, after)] == [True, True, False, True]


def test_a_test_is_posted_once_at_a_time_and_is_not_tried_again(receiver: Receiver) -> None:
    receiver.then(answers(500))
    channel, _ = webhook(receiver)
    assert services.send_test(channel=channel, now=NOW)
    assert not services.send_test(channel=channel, now=NOW)
    drain()
    assert (only().state, only().answer) == ("given_up", "answered 500")
    assert json.loads(receiver.requests[0][2])["type"] == "winecellar.test"
    channel.refresh_from_db()
    assert (channel.given_up, channel.off_at) == (0, None)
    receiver.then(answers(200))
    assert services.send_test(channel=channel, now=NOW)
    drain()
    assert only().state == "taken"


def test_without_its_secret_key_a_channel_is_switched_off_in_words(receiver: Receiver, settings: Any) -> None:
    channel, _ = webhook(receiver)
    alert("160.00")
    price("154.00")
    drain(["alert-matching"])
    settings.SECRET_KEY = "another-" + "k" * 50
    drain()
    channel.refresh_from_db()
    assert "can no longer read" in channel.off_because
    assert not receiver.requests


def test_nothing_stored_opens_a_channel(receiver: Receiver) -> None:
    _, secret = webhook(receiver)
    token = services.open_feed(user_id=person().pk, now=NOW)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_jsonb(c)::text FROM alerts_channel c UNION ALL SELECT to_jsonb(f)::text FROM alerts_atomfeed f"
        )
        stored = "".join(row for (row,) in cursor.fetchall())
    assert secret.removeprefix("whsec_") not in stored
    assert "told?by" not in stored
    assert token not in stored


def test_no_log_line_and_no_message_holds_an_address_or_a_secret(
    receiver: Receiver, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    receiver.then(answers(500))
    _, secret = webhook(receiver)
    alert("160.00")
    price("154.00")
    drain()
    out = "".join(capfd.readouterr()) + caplog.text + "".join(str(m.body) for m in LoggedMessage.objects.all())
    assert "told?by" not in out
    assert secret.removeprefix("whsec_") not in out


@pytest.mark.parametrize("count", [5])
def test_nobody_has_more_channels_than_there_can_be_nor_one_twice(receiver: Receiver, count: int) -> None:
    for number in range(count):
        webhook(receiver, path=str(number))
    with pytest.raises(services.ChannelRefusedError, match="the most there can be"):
        webhook(receiver, path="x")
    Channel.objects.first().delete()  # type: ignore[union-attr]
    with pytest.raises(services.ChannelRefusedError, match="already"):
        webhook(receiver, path="1")


def test_channels_outlive_a_replaced_secret_key_once_they_are_resealed(receiver: Receiver, settings: Any) -> None:
    webhook(receiver)
    alert("160.00")
    price("154.00")
    drain(["alert-matching"])
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "the-new-one-" + "k" * 50
    call_command("reseal_channels", stdout=io.StringIO())
    settings.SECRET_KEY_FALLBACKS = []
    drain()
    assert only().state == "taken"
    settings.SECRET_KEY = "another-" + "k" * 50
    with pytest.raises(CommandError, match="1 cannot be read"):
        call_command("reseal_channels", stdout=io.StringIO())
