"""The crash-point sweep over intake, claim and every handler: whatever statement a process dies at, nothing is
half-applied, nothing acknowledged is lost, and each effect happens once after the work is done again."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from alerts.events import ALERT_CREATED
from alerts.models import Alert, Decision, Notification
from jobs.messages import NewMessage
from jobs.models import DeadLetter, Delivery, LoggedMessage, ProcessedMessage, Subscription
from jobs.outbox import publish
from jobs.subscriptions import External, load_routes
from jobs.worker import drain
from pricing.events import PRICE_CHANGED
from pricing.keys import create_key
from pricing.models import FeedAnswer, FeedKey, FeedRate, Offer, PriceHistory
from tests.cast import alert, merchant, price, wine
from tests.faults import mail_server, page
from tests.faults.crash import Points, sweep

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # The parallel runner has threads; our children end by os._exit or at their alarm, and wait for none of them.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _mail(tmp_path: Path, settings: Any) -> Iterator[None]:
    settings.EMAIL_BACKEND = mail_server.BACKEND
    mail_server.begin(tmp_path / "accepted")
    yield
    mail_server.begin(None)


def wipe() -> None:
    mail_server.forget()
    for model in (Notification, Decision, Alert, PriceHistory, Offer, FeedAnswer, FeedKey, FeedRate, DeadLetter):
        model.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_delivery")
        cursor.execute("DELETE FROM jobs_message")
        cursor.execute("DELETE FROM processed_messages")


def let_leases_end() -> None:
    Delivery.objects.update(visible_at=timezone.now() - timedelta(seconds=1))


def drain_all() -> None:
    """Work until nothing is left, as workers that find crashed deliveries one by one would."""
    for _ in range(20):
        let_leases_end()
        drain()
        if not Delivery.objects.exists():
            return
    raise AssertionError("the queue does not empty")


def drained(*names: str) -> Any:
    def act(points: Points) -> None:
        mail_server.points = points
        drain(names)

    return act


def ledger(consumer: str) -> set[str]:
    return set(ProcessedMessage.objects.filter(consumer_name=consumer).values_list("event_id", flat=True))


def waiting(subscription: str) -> set[str]:
    return set(Delivery.objects.filter(subscription__name=subscription).values_list("event_id", flat=True))


def report(name: str, points: int, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\ncrash points: {name}: {points}")
    page.hold(name, points)


@pytest.mark.parametrize("wines", [(1, 2), (1,)], ids=["several prices", "a single price"])
def test_intake_dies_at_every_point(wines: tuple[int, ...], capsys: pytest.CaptureFixture[str]) -> None:
    keys: list[str] = []
    count = len(wines)
    body = json.dumps(
        {
            "observations": [
                {"wine_id": f"wn_{n}", "price": "154.00", "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z"}
                for n in wines
            ]
        }
    )

    def prepare() -> None:
        wipe()
        for n in wines:
            wine(str(n))
        keys[:] = [create_key(merchant=merchant(), note="", now=timezone.now())[1]]

    def post() -> Any:
        return Client().post(
            "/feeds/v1/price-changes",
            data=body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {keys[0]}", "Idempotency-Key": "the-same-each-time"},
        )

    subscribed = sum(PRICE_CHANGED in route.message_types for route in load_routes().values())
    everything = count, count, count * subscribed

    def all_or_nothing() -> None:
        counts = Offer.objects.count(), LoggedMessage.objects.count(), Delivery.objects.count()
        assert counts in {(0, 0, 0), everything}, counts

    def retry() -> None:
        answer = post()
        assert answer.status_code == 202, answer.content

    def check_end(where: str) -> None:
        counts = Offer.objects.count(), LoggedMessage.objects.count(), Delivery.objects.count()
        assert counts == everything, (where, counts)

    points = sweep(
        prepare=prepare, act=lambda _: post(), check_after_crash=all_or_nothing, recover=retry, check_end=check_end
    )
    report("feed intake" if count > 1 else "feed intake of a single price", points, capsys)


def test_price_history_dies_at_every_point(capsys: pytest.CaptureFixture[str]) -> None:
    events: list[str] = []

    def prepare() -> None:
        wipe()
        events[:] = [price(amount, minutes=n).event_id for n, amount in enumerate(["189.00", "154.00", "161.00"])]

    def whole() -> None:
        written = set(PriceHistory.objects.values_list("event_id", flat=True))
        assert written == ledger("price-history") == set(events) - waiting("price-history")

    def check_end(where: str) -> None:
        assert list(PriceHistory.objects.order_by("id").values_list("event_id", flat=True)) == events, where
        assert not DeadLetter.objects.exists()

    points = sweep(
        prepare=prepare,
        act=drained("price-history"),
        check_after_crash=whole,
        recover=drain_all,
        check_end=check_end,
    )
    report("claim and price-history", points, capsys)


def test_alert_matching_dies_at_every_point(capsys: pytest.CaptureFixture[str]) -> None:
    created: list[str] = []

    def prepare() -> None:
        wipe()
        alert("160.00")
        fresh = alert("170.00", state="pending", owner="bob")
        event = price("154.00", old="189.00")
        with transaction.atomic():
            check = publish([NewMessage(ALERT_CREATED, "wn_4417", {"alert_id": fresh.pk, "wine_id": "wn_4417"})])
        created[:] = [event.event_id, *check]

    def whole() -> None:
        decided = set(Notification.objects.values_list("event_id", flat=True))
        commanded = {m.body["event_id"] for m in LoggedMessage.objects.filter(type="send_alert_email")}
        fired = Alert.objects.filter(state="fired").count()
        assert decided == commanded == ledger("alert-matching") == set(created) - waiting("alert-matching")
        assert fired == len(decided) == Decision.objects.count()

    def check_end(where: str) -> None:
        whole()
        assert Notification.objects.filter(state="sent").count() == 2, where
        assert len(mail_server.accepted()) == len(set(mail_server.accepted())) == 2, where

    points = sweep(
        prepare=prepare,
        act=drained("alert-matching"),
        check_after_crash=whole,
        recover=drain_all,
        check_end=check_end,
    )
    report("claim and alert-matching", points, capsys)


def test_notification_delivery_dies_at_every_point(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one window that remains: the mail server has accepted, and we die before our commit. It is counted."""
    repeated: list[str] = []
    route = load_routes()["notification-delivery"]
    assert isinstance(route.handler, External)
    # One mail under way at a time, so that each run meets the same points in the same order.
    monkeypatch.setitem(load_routes(), route.name, replace(route, handler=replace(route.handler, at_once=1)))

    def prepare() -> None:
        wipe()
        # One partition: alerts get new numbers each time, and which partitions they fall into decides the claims.
        Subscription.objects.filter(name=route.name).update(partitions=1)
        alert("160.00")
        alert("170.00", owner="bob")
        price("154.00")
        drain(["price-history", "alert-matching"])

    def whole() -> None:
        sent = {n.event_id for n in Notification.objects.filter(state="sent")}
        assert Notification.objects.filter(state="sent").count() == len(ledger("notification-delivery"))
        assert len(set(mail_server.accepted())) >= len(sent)

    def check_end(where: str) -> None:
        mails = mail_server.accepted()
        assert len(set(mails)) == 2, (where, "a mail is missing")
        assert len(mails) <= 3, (where, "only what was under way may go out again")
        if len(mails) > 2:
            repeated.append(where)
        assert Notification.objects.filter(state="sent").count() == 2
        assert not DeadLetter.objects.exists()

    points = sweep(
        prepare=prepare,
        act=drained("notification-delivery"),
        check_after_crash=whole,
        recover=drain_all,
        check_end=check_end,
    )
    report("claim and notification-delivery", points, capsys)
    with capsys.disabled():
        print(f"  a mail went out twice (same Message-ID) after a crash {', '.join(repeated) or 'nowhere'}")
    assert repeated, "the window exists; a sweep that does not meet it is not looking"
