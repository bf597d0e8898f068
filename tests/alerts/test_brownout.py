"""The mail provider is away for half an hour: nothing is lost, nothing is buried, hardly anything is tried.

How time passes: outage.py.
"""

import smtplib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends import locmem
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from jobs import lanes
from jobs.breaker import Breaker, Gate
from jobs.models import Breaker as BreakerRow
from jobs.models import DeadLetter, Delivery, LoggedMessage
from jobs.worker import drain
from tests.alerts.outage import let_pass, mails_to_send, wait_for_end, waiting
from tests.cast import alert, price, wine

pytestmark = pytest.mark.django_db(transaction=True)


class Provider:
    """Django's mailbox in memory behind something that may be away, and counts what was tried."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.for_addressee: dict[str, Exception] = {}
        self.tried: list[str] = []

    def send(self, backend: Any, messages: Any) -> int:
        (message,) = messages
        self.tried.append(message.extra_headers["Message-ID"])
        error = self.for_addressee.get(message.to[0], self.error)
        if error is not None:
            raise error
        mail.outbox.append(message)
        return 1


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Provider]:
    mail.outbox = []
    settings.WORKER_POLL_INTERVAL = timedelta(milliseconds=1)  # a lane reads the breaker each time it looks
    monkeypatch.setattr(lanes, "BREAKER_SECONDS", 0.001)
    made = Provider()

    def send(self: Any, messages: Any) -> int:
        return made.send(self, messages)

    monkeypatch.setattr(locmem.EmailBackend, "send_messages", send)
    yield made
    BreakerRow.objects.all().delete()


def test_half_an_hour_away_loses_no_mail_buries_none_and_is_hardly_tried(provider: Provider) -> None:
    mails_to_send(30)
    provider.error = TimeoutError()
    for _ in range(6 * 30):
        drain(["notification-delivery"])
        let_pass(timedelta(seconds=10))
    during = len(provider.tried)
    assert 20 <= during <= 90, f"{during} tries: at first what was under way, then a probe about each minute"
    assert not DeadLetter.objects.exists()
    assert set(waiting().values_list("receive_count", flat=True)) <= {0}, "a receive is the message's own failure"
    assert len(set(provider.tried)) > 5, "the probe is not always the same mail"
    provider.error = None
    for _ in range(8):
        wait_for_end()
        drain(["notification-delivery"])
    assert len(mail.outbox) == 30
    assert not waiting().exists()
    assert not BreakerRow.objects.get().opened_at


def test_while_it_is_away_the_other_subscriptions_go_on_and_share_what_was_learnt(provider: Provider) -> None:
    mails_to_send(10)
    provider.error = TimeoutError()
    drain(["notification-delivery"])
    tried = len(provider.tried)
    price("150.00", of=wine("90"), minutes=1)
    drain()  # matching and history work; account mails would ask the same provider, and know that it is away
    assert len(provider.tried) == tried
    assert not Delivery.objects.filter(subscription__name__in=["price-history", "alert-matching"]).exists()


def a_poll_later(breaker: Breaker) -> Gate:
    """What it says when it reads the row again; until then it says what it knew."""
    breaker._read_at = float("-inf")
    return breaker.gate()


def test_one_probe_at_a_time_over_all_workers_and_a_lost_one_is_made_by_another(provider: Provider) -> None:
    first, second = Breaker("one"), Breaker("one")
    for _ in range(5):
        first.failed("away", retry_after=0, token=None)
    assert (a_poll_later(first), a_poll_later(second)) == (Gate.SHUT, Gate.SHUT)
    let_pass(timedelta(seconds=10))
    assert (a_poll_later(first), a_poll_later(second)) == (Gate.PROBE, Gate.PROBE)
    token = first.take_probe()
    assert token is not None
    assert second.take_probe() is None
    assert (a_poll_later(first), a_poll_later(second)) == (Gate.SHUT, Gate.SHUT)
    let_pass(timedelta(minutes=2))  # whoever had it died
    heir = second.take_probe()
    assert heir is not None
    first.succeeded(1, token=token)
    assert a_poll_later(first) is Gate.SHUT, "the word of whoever lost the probe is not heard"
    second.succeeded(1, token=heir)
    assert (a_poll_later(first), a_poll_later(second)) == (Gate.CLOSED, Gate.CLOSED)


def test_of_many_workers_that_ask_at_once_one_may_probe(provider: Provider) -> None:
    for _ in range(5):
        Breaker("one").failed("away", retry_after=0, token=None)
    let_pass(timedelta(minutes=1))
    barrier = threading.Barrier(8)

    def ask() -> int | None:
        try:
            asking = Breaker("one")
            asking.gate()
            barrier.wait(20)
            return asking.take_probe()
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask) for _ in range(8)]
    assert sum(answer.result() is not None for answer in asked) == 1


def test_a_probe_that_is_answered_in_any_way_finds_the_provider_well(provider: Provider) -> None:
    """The mail itself may be refused; whoever refuses is there."""
    mails_to_send(12)
    provider.error = TimeoutError()
    drain(["notification-delivery"])
    assert BreakerRow.objects.get().opened_at
    provider.error = smtplib.SMTPDataError(554, b"not this one")
    wait_for_end()
    drain(["notification-delivery"])
    assert not BreakerRow.objects.get().opened_at
    assert DeadLetter.objects.filter(reason="mail server: 554").exists()


def test_an_operator_may_close_it(provider: Provider) -> None:
    asked = Breaker("one")
    asked.failed("429", retry_after=3_600, token=None)
    assert asked.gate() is Gate.SHUT
    told = StringIO()
    call_command("subscriptions", stdout=told)
    assert "one is away since" in told.getvalue()
    call_command("subscriptions", "retry", "one", stdout=StringIO())
    assert asked.gate() is Gate.CLOSED
    with pytest.raises(CommandError, match="Nothing is known to be away by the name of another"):
        call_command("subscriptions", "retry", "another")


def test_while_all_is_well_nothing_is_written(provider: Provider) -> None:
    mails_to_send(3)
    drain(["notification-delivery"])
    assert len(mail.outbox) == 3
    assert not BreakerRow.objects.exists()


def test_a_provider_that_says_when_is_not_asked_before(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    from jobs.errors import AwayError
    from jobs.mail import transport

    def too_many(message: Any) -> bool:
        provider.tried.append("asked")
        raise AwayError("mail provider: 429", retry_after=600)

    monkeypatch.setattr(transport, "hand_over", too_many)
    mails_to_send(20)
    drain(["notification-delivery"])
    tried = len(provider.tried)
    assert tried <= 8, "what was under way when the first answer came"
    let_pass(timedelta(seconds=590))
    drain(["notification-delivery"])
    assert len(provider.tried) == tried
    let_pass(timedelta(seconds=11))
    drain(["notification-delivery"])
    assert len(provider.tried) == tried + 1, "one, to see"


def test_a_mail_that_only_itself_cannot_be_sent_stops_no_other_and_is_buried_in_the_end(
    provider: Provider, settings: Any
) -> None:
    """The provider answers it, and it alone, with a failure of the provider's own."""
    provider.for_addressee["bob@winecellar.example"] = ConnectionResetError()
    alert("160.00", owner="bob", wine=wine("1"))
    price("154.00", of=wine("1"))
    drain(["alert-matching"])
    for _ in range(12):  # alone, it opens the breaker
        drain(["notification-delivery"])
        let_pass(timedelta(seconds=70))
    assert BreakerRow.objects.get().opened_at
    mails_to_send(5)
    for _ in range(6):
        drain(["notification-delivery"])
        let_pass(timedelta(seconds=70))
    assert len(mail.outbox) == 5, "the others went past it"
    assert waiting().get().receive_count == 0
    settings.AWAY_PATIENCE = timedelta(0)  # a day later
    for _ in range(40):
        drain(["notification-delivery"])
        wait_for_end()
    assert DeadLetter.objects.get().receive_count == settings.MAX_RECEIVES
    assert not waiting().exists()


def test_a_day_is_how_long_a_provider_may_be_away(provider: Provider, settings: Any) -> None:
    mails_to_send(1)
    day_old = timezone.now() - settings.AWAY_PATIENCE - timedelta(minutes=1)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_delivery SET published_at = %s", [day_old])
        cursor.execute("UPDATE jobs_message SET published_at = %s WHERE type = 'send_alert_email'", [day_old])
    assert LoggedMessage.objects.filter(type="send_alert_email", published_at=day_old).exists()
    provider.error = TimeoutError()
    for _ in range(12):
        drain(["notification-delivery"])
        wait_for_end()
    assert DeadLetter.objects.get().reason == "mail server: TimeoutError"
