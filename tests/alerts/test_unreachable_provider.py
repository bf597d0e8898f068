"""A mail provider whose certificate is bad, or whose name nobody knows (F25): by the real backends, over TLS."""

import json
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from django.db import connection

from jobs import lanes
from jobs.mail import transport
from jobs.models import Breaker, DeadLetter
from jobs.worker import drain
from tests import certificates
from tests.alerts.outage import mails_to_send, wait_for_end, waiting
from tests.processes.conftest import wait_until
from winecellar import mail_provider
from winecellar.demo.mail_api import ApiServer, Taken
from winecellar.demo.mail_script import Script

pytestmark = pytest.mark.django_db(transaction=True)
MAILS = 6
NAME = "mail.invalid"  # a name that no server of names knows (RFC 6761)


class Server:
    """A provider with a certificate that can be changed, and with what it took, by key."""

    def __init__(self, folder: Path) -> None:
        self.authority = certificates.issue(folder / "authority.pem", "authority")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.good = certificates.issue(folder / "good.pem", NAME, by=self.authority)
        self.show(self.good)

    def show(self, issued: certificates.Issued) -> None:
        """To whoever comes from now on."""
        self.context.load_cert_chain(issued.pem)


class Resend(Server):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.log = folder / "taken.jsonl"
        self.api = ApiServer(0, Taken(self.log), Script())
        self.api.socket = self.context.wrap_socket(self.api.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"resend://re_key@{NAME}:{self.api.port}/"
        self.api.start()

    def reason(self, what: str) -> str:
        return "mail provider: no answer"

    def taken(self) -> Counter[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else ()
        return Counter(json.loads(line)["key"] for line in lines)

    def close(self) -> None:
        self.api.shutdown()
        self.api.server_close()


class Smtp(Server):
    """With STARTTLS, which it insists on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._keys: Counter[str] = Counter()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.controller = Controller(
            self, hostname="127.0.0.1", port=port, tls_context=self.context, require_starttls=True
        )
        self.controller.start()
        self.url = f"smtp://{NAME}:{port}/?tls=true"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        lines = envelope.content.decode().splitlines()
        (key,) = [line.partition(": ")[2] for line in lines if line.lower().startswith("message-id:")]
        self._keys[key.strip("<>")] += 1
        return "250 kept"

    def reason(self, what: str) -> str:
        return f"mail server: {'gaierror' if what == 'name not known' else 'SSLCertVerificationError'}"

    def taken(self) -> Counter[str]:
        return self._keys

    def close(self) -> None:
        self.controller.stop()


@pytest.fixture(params=[Resend, Smtp])
def server(request: pytest.FixtureRequest, tmp_path: Path, settings: Any, monkeypatch: Any) -> Iterator[Resend | Smtp]:
    """The settings send mails there, by its name, and its authority is trusted."""
    made: Resend | Smtp = request.param(tmp_path)
    for name, value in mail_provider.read(made.url, timeout=5.0).items():
        setattr(settings, name, value)
    settings.WORKER_POLL_INTERVAL = timedelta(milliseconds=1)  # a lane reads the breaker each time it looks
    monkeypatch.setattr(lanes, "BREAKER_SECONDS", 0.001)
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.setenv(variable, str(made.authority.pem))
    yield made
    transport._drop()
    made.close()
    Breaker.objects.all().delete()


real_names = socket.getaddrinfo


def known(host: Any, *given: Any, **more: Any) -> Any:
    return real_names("127.0.0.1" if host == NAME else host, *given, **more)


@pytest.mark.parametrize("what", ["expired", "self-signed", "of another host", "name not known"])
def test_a_provider_that_cannot_be_trusted_or_found_is_away_and_each_mail_is_taken_once_when_it_can(
    what: str, server: Resend | Smtp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = server.authority
    if what != "name not known":
        monkeypatch.setattr(socket, "getaddrinfo", known)
        bad = {"expired": {"by": by, "expired": True}, "self-signed": {}, "of another host": {"by": by}}[what]
        host = "other.invalid" if what == "of another host" else NAME
        server.show(certificates.issue(tmp_path / "bad.pem", host, **bad))
    mails_to_send(MAILS)
    drain(["notification-delivery"])

    breaker = Breaker.objects.get()
    assert breaker.opened_at, "after a few failures it is not tried again for each mail"
    assert breaker.reason == server.reason(what)
    assert set(waiting().values_list("receive_count", "lease_token")) == {(0, None)}, "given back, and not charged"
    assert len(set(waiting().values_list("visible_at", flat=True))) == MAILS, "they do not all come back at once"
    drain(["notification-delivery"])
    assert Breaker.objects.get().last_failed_at == breaker.last_failed_at, "nor is it tried again before its time"
    assert not server.taken()

    if what == "name not known":
        monkeypatch.setattr(socket, "getaddrinfo", known)
    else:
        server.show(server.good)
    for _ in range(8):
        wait_for_end()
        drain(["notification-delivery"])
    assert not waiting().exists()
    assert not DeadLetter.objects.exists()
    assert sorted(server.taken().values()) == [1] * MAILS
    assert not Breaker.objects.get().opened_at


def test_while_a_name_is_looked_up_for_longer_than_a_lease_the_mail_stays_ours_and_is_taken_once(
    server: Resend | Smtp, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """No deadline of ours ends the system's resolver; so the lease is renewed, and nobody else takes the mail."""
    settings.VISIBILITY_TIMEOUT = timedelta(seconds=0.6)
    asked, found = threading.Semaphore(0), threading.Event()

    def slow(host: Any, *given: Any, **more: Any) -> Any:
        if host == NAME:
            asked.release()
            found.wait(30)
        return known(host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    mails_to_send(1)
    with ThreadPoolExecutor(1) as other:
        working = other.submit(drain_elsewhere)
        assert asked.acquire(timeout=20)
        first = waiting().get()
        until = first.visible_at + 3 * settings.VISIBILITY_TIMEOUT
        wait_until(lambda: waiting().get().visible_at > until, what="the lease is renewed again and again")
        drain(["notification-delivery"])
        assert waiting().get().lease_token == first.lease_token, "nobody else began it"
        assert not asked.acquire(blocking=False)
        found.set()
        working.result(30)
    assert not waiting().exists()
    assert list(server.taken().values()) == [1]


def drain_elsewhere() -> None:
    try:
        drain(["notification-delivery"])
    finally:
        connection.close()
