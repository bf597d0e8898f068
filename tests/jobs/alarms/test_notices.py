"""Each turn of an incident is told once, by mail and by a signed webhook; acknowledged in the admin or by command."""

import base64
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from jobs.alarms import incidents, notices
from jobs.alarms.rules import Condition, Severity
from jobs.models import Incident, Notice
from jobs.standard_webhooks import Signed, check_signature
from tests.jobs.schedule.conftest import MINUTE, T, schedule

__all__ = ["schedule"]
SECRET = b"an-alarm-secret-of-32-bytes-....."
LATE = Condition("queue-late", "alert-matching", Severity.PAGE, "The oldest has waited for 4 min.")


class Receiver:
    """Answers as told, and keeps what came."""

    def __init__(self) -> None:
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.answer = 204
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.came.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(receiver.answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/hook"


@pytest.fixture
def receiver(schedule: Any, settings: Any) -> Iterator[Receiver]:
    made = Receiver()
    settings.ALARM_WEBHOOK_URL, settings.ALARM_WEBHOOK_SECRET = made.url, "whsec_" + base64.b64encode(SECRET).decode()
    settings.ALARM_MAIL_TO = ["ops@winecellar.example"]
    yield made
    made.server.shutdown()


def judge(now: Any, *conditions: Condition) -> None:
    incidents.record(conditions, judged=[LATE.alarm], now=now, opens_after={}, closes_after=timedelta(minutes=5))


def test_opened_acknowledged_and_closed_are_each_told_once_each_way(receiver: Receiver) -> None:
    for minute in range(3):
        judge(T + minute * MINUTE, LATE)
        notices.tell(T + minute * MINUTE)
    (incident,) = Incident.objects.all()
    assert incidents.acknowledge(incident_id=incident.pk, by="dora")
    notices.tell(T + 3 * MINUTE)
    for minute in range(9, 12):
        judge(T + minute * MINUTE)
        notices.tell(T + minute * MINUTE)
    assert [m.subject for m in mail.outbox] == ["Page: queue-late, alert-matching", "Over: queue-late, alert-matching"]
    assert "docs/runbooks/queue-behind.md" in mail.outbox[0].body
    assert len({m.extra_headers["Message-ID"] for m in mail.outbox}) == 2
    bodies = [json.loads(body) for _, body in receiver.came]
    assert [body["type"] for body in bodies] == ["incident.opened", "incident.acknowledged", "incident.closed"]
    assert bodies[0]["data"]["runbook"] == "docs/runbooks/queue-behind.md"
    assert bodies[0]["data"]["summary"] == LATE.summary
    assert bodies[1]["data"]["acknowledged_by"] == "dora"
    assert len({headers["webhook-id"] for headers, _ in receiver.came}) == 3
    for headers, body in receiver.came:
        given = Signed(headers["webhook-id"], headers["webhook-timestamp"], headers["webhook-signature"])
        check_signature(given, body, secrets=[SECRET])
    assert incident.pk == Incident.objects.get().pk
    assert Incident.objects.get().told_at is not None


def test_a_webhook_that_fails_is_told_again_under_the_same_id_and_the_mail_is_not(receiver: Receiver) -> None:
    receiver.answer = 500
    judge(T, LATE)
    assert notices.tell(T) == 1, "the mail"
    assert notices.tell(T + MINUTE / 2) == 0, "another may be at it"
    receiver.answer = 200
    assert notices.tell(T + 2 * MINUTE) == 1
    assert notices.tell(T + 9 * MINUTE) == 0
    assert len(mail.outbox) == 1
    assert len({headers["webhook-id"] for headers, _ in receiver.came}) == 1
    assert len(receiver.came) == 2


def test_a_redirect_is_not_followed_and_nobody_listening_is_no_error_of_the_watchmans(
    receiver: Receiver, settings: Any
) -> None:
    receiver.answer = 302
    judge(T, LATE)
    notices.tell(T)
    settings.ALARM_WEBHOOK_URL = "http://127.0.0.1:1/"
    assert notices.tell(T + 2 * MINUTE) == 0
    assert Notice.objects.filter(way="webhook", told_at=None).count() == 1


def test_a_turn_that_is_rolled_back_is_told_to_nobody(receiver: Receiver) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        judge(T, LATE)
        raise RuntimeError
    assert notices.tell(T) == 0
    assert receiver.came == []


def test_two_who_tell_at_once_tell_it_once(receiver: Receiver) -> None:
    judge(T, LATE)
    barrier = threading.Barrier(4)

    def tell() -> None:
        barrier.wait(timeout=30)
        notices.tell(T)
        connection.close()

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(receiver.came) == 1
    assert len(mail.outbox) == 1


def test_an_incident_is_listed_and_acknowledged_by_command(receiver: Receiver) -> None:
    judge(T, LATE)
    (incident,) = Incident.objects.all()
    listed = StringIO()
    call_command("incidents", stdout=listed)
    assert f"{incident.pk}  page  queue-late, alert-matching" in listed.getvalue()
    assert "docs/runbooks/queue-behind.md" in listed.getvalue()
    call_command("incidents", "acknowledge", str(incident.pk), "--by", "dora", stdout=listed)
    assert "acknowledged by dora" in listed.getvalue()
    for pk, why in ((incident.pk, "is acknowledged"), (10**9, "There is no incident")):
        with pytest.raises(CommandError, match=why):
            call_command("incidents", "acknowledge", str(pk), "--by", "dora", stdout=listed)
