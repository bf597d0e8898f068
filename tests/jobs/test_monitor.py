"""Pings of the outside monitor: to a real server, bounded whatever it does, never in a transaction."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.db import transaction

from jobs import monitor


class Outside(BaseHTTPRequestHandler):
    heard: list[str]
    answer: str
    let_go: threading.Event

    def do_POST(self) -> None:
        self.heard.append(self.path)
        match self.answer:
            case "drip":  # a byte now and then: no single read is ever late
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while not self.let_go.wait(0.05):
                    self.wfile.write(b"x")
            case "redirect":
                self.send_response(302)
                self.send_header("Location", "/elsewhere")
                self.end_headers()
            case status:
                self.send_response(int(status))
                self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def outside(settings: Any) -> Iterator[type[Outside]]:
    handler = type("Handler", (Outside,), {"heard": [], "answer": "200", "let_go": threading.Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    settings.MONITOR_PING_URL = f"http://127.0.0.1:{server.server_port}/ping/key"
    yield handler
    handler.let_go.set()
    server.shutdown()
    server.server_close()


def test_it_is_told_of_start_success_and_failure_by_name(outside: type[Outside]) -> None:
    monitor.started("nightly")
    monitor.succeeded("nightly")
    monitor.failed("nightly")
    assert outside.heard == ["/ping/key/nightly/start", "/ping/key/nightly", "/ping/key/nightly/fail"]


@pytest.mark.parametrize("answer", ["404", "500", "redirect"])
def test_what_it_answers_harms_nobody_and_is_not_followed(
    outside: type[Outside], answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    outside.answer = answer
    monitor.succeeded("nightly")
    assert outside.heard == ["/ping/key/nightly"]
    assert "monitor.refused" in caplog.text


def test_a_monitor_that_answers_a_byte_at_a_time_is_given_up(
    outside: type[Outside], settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    outside.answer = "drip"
    settings.MONITOR_TIMEOUT = timedelta(seconds=0.5)
    monitor.succeeded("nightly")
    assert "monitor.late" in caplog.text
    assert not outside.let_go.is_set(), "it still drips, and we went on"


def test_a_monitor_that_is_not_there_harms_nobody(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.MONITOR_PING_URL = "http://127.0.0.1:1/ping"
    monitor.succeeded("nightly")
    assert "monitor.unreachable" in caplog.text


def test_without_an_address_nothing_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr(monitor, "_request", called.append)
    monitor.succeeded("nightly")
    assert called == []


@pytest.mark.django_db(transaction=True)
def test_never_while_a_transaction_is_open(outside: type[Outside]) -> None:
    with pytest.raises(AssertionError, match="transaction"), transaction.atomic():
        monitor.succeeded("nightly")
    assert outside.heard == []
