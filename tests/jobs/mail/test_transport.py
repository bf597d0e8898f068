"""Handing mails to a provider that hangs, refuses, drips and cuts off: what follows, and that each is taken once."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import AwayError, PermanentError
from jobs.mail import transport
from jobs.mail.transport import hand_over
from tests.jobs.mail.conftest import TIMEOUT, Provider, mail
from winecellar import mail_provider


@pytest.fixture
def keys(tmp_path: Path) -> Any:
    """The keys of all that the provider has taken, by its own log."""

    def read() -> list[str]:
        log = tmp_path / "taken.jsonl"
        return [json.loads(line)["key"] for line in log.read_text().splitlines()] if log.exists() else []

    return read


def until_taken(tries: int = 6) -> list[str]:
    """Hand the same mail over until it is said to be taken; the reasons why it was not."""
    reasons: list[str] = []
    for _ in range(tries):
        try:
            hand_over(mail())
        except AwayError as error:
            reasons.append(str(error))
        else:
            return reasons
    raise AssertionError(reasons)


@pytest.mark.parametrize(
    ("script", "reasons"),
    [
        ("ok", []),
        ("hang:1.5", ["no answer"]),
        ("taken-hang:1.5", ["no answer"]),
        ("429:7, 429", ["429", "429"]),
        ("500*3", ["500", "500", "500"]),
        ("drip", ["no answer"]),
        ("reset", ["no answer"]),
        ("taken-reset*2", ["no answer", "no answer"]),
        ("garbage", ["unreadable answer"]),
        ("401", ["401"]),
    ],
)
def test_whatever_the_provider_does_the_mail_is_taken_once_under_its_key(
    provider: Provider, keys: Any, script: str, reasons: list[str]
) -> None:
    provider(script)
    met = until_taken()
    assert len(met) == len(reasons)
    for said, expected in zip(met, reasons, strict=True):
        assert said.endswith((expected, "TimeoutError")), said
    assert keys() == ["alert-1.evt_1@winecellar.example"]


@pytest.mark.parametrize("script", ["hang:9", "drip"])
def test_no_exchange_outlasts_its_deadline_by_much(provider: Provider, script: str) -> None:
    provider(script)
    began = time.monotonic()
    with pytest.raises(AwayError):
        hand_over(mail())
    assert time.monotonic() - began < 5 * TIMEOUT, "a bound against hanging, not a measure of speed"


def test_retry_after_is_the_floor_of_the_next_try(provider: Provider) -> None:
    provider("429:70")
    with pytest.raises(AwayError) as caught:
        hand_over(mail())
    assert caught.value.retry_after == 70


def test_a_mail_that_is_wrong_is_wrong_for_ever(provider: Provider, keys: Any) -> None:
    provider("422")
    with pytest.raises(PermanentError, match=r"^mail provider: 422$"):
        hand_over(mail())
    assert keys() == []


def test_a_key_that_was_used_for_another_text_counts_as_sent(provider: Provider, keys: Any) -> None:
    """A wine was renamed between an unheard yes and the next try: one mail per key, not two."""
    provider("taken-reset")
    with pytest.raises(AwayError):
        hand_over(mail(body="It is $154.00."))
    assert hand_over(mail(body="It is $154.00, at last.")) is True
    assert len(keys()) == 1


def test_a_thread_keeps_its_connection_and_drops_one_that_failed(provider: Provider, keys: Any) -> None:
    server = provider("ok*3, 500")
    for number in range(3):
        hand_over(mail(number))
    assert server.connections == 1
    with pytest.raises(AwayError):
        hand_over(mail(3))
    hand_over(mail(3))
    assert server.connections == 2
    assert len(keys()) == 4


def test_the_key_is_not_told_to_whoever_the_provider_points_to(provider: Provider, settings: Any) -> None:
    """No redirect is followed: a POST would arrive as a GET, and be no mail."""
    provider("ok")
    settings.ANYMAIL = settings.ANYMAIL | {"RESEND_API_URL": settings.ANYMAIL["RESEND_API_URL"] + "elsewhere/"}
    with pytest.raises(AwayError, match="404"):
        hand_over(mail())


# --- SMTP -------------------------------------------------------------------------------------------------------


class Server:
    """A mail server of scripted lines: what it says at each step, `None` for silence, `b"drip"` for a byte a second."""

    def __init__(self, **says: bytes | None) -> None:
        self.says: dict[str, bytes | None] = {
            "greeting": b"220 ready",
            "ehlo": b"250 hello",
            "mail": b"250 ok",
            "rcpt": b"250 ok",
            "data": b"354 go on",
            "end": b"250 taken",
            "quit": b"221 bye",
            "rset": b"250 ok",
        } | says
        self.taken = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as lines:
                self._say(connection, "greeting")
                for line in lines:
                    verb = line[:4].decode().lower().strip()
                    self._say(connection, verb)
                    if verb == "data":
                        while next(lines) != b".\r\n":
                            pass
                        self.taken += (self.says["end"] or b"2")[:1] == b"2"
                        self._say(connection, "end")
                    if verb == "quit":
                        return
        except (OSError, StopIteration):
            return

    def _say(self, connection: socket.socket, step: str) -> None:
        said = self.says[step]
        if said is None:
            time.sleep(3)
        elif said == b"drip":
            for _ in range(60):
                connection.sendall(b"2")
                time.sleep(0.2)
        else:
            connection.sendall(said + b"\r\n")


@pytest.fixture
def smtp(settings: Any) -> Iterator[Any]:
    servers: list[Server] = []

    def start(**says: bytes | None) -> Server:
        server = Server(**says)
        servers.append(server)
        for name, value in mail_provider.read(f"smtp://127.0.0.1:{server.port}", timeout=TIMEOUT).items():
            setattr(settings, name, value)
        settings.MAIL_TIMEOUT = timedelta(seconds=TIMEOUT)
        return server

    yield start
    transport._drop()
    for server in servers:
        server.close()


@pytest.mark.parametrize("says", [{}, {"quit": None}, {"quit": b"500 what"}, {"quit": b"drip"}])
def test_once_the_server_has_taken_it_nothing_that_follows_makes_it_a_failure(smtp: Any, says: Any) -> None:
    server = smtp(**says)
    assert hand_over(mail()) is True
    assert server.taken == 1


def test_a_mail_server_that_offers_no_tls_gets_no_mail_where_it_was_asked_for(smtp: Any, settings: Any) -> None:
    server = smtp()
    settings.EMAIL_USE_TLS = True
    with pytest.raises(AwayError, match="SMTPNotSupportedError"):
        hand_over(mail())
    assert server.taken == 0


@pytest.mark.parametrize(
    ("says", "meaning"),
    [
        ({"greeting": None}, AwayError),
        ({"greeting": b"drip"}, AwayError),
        ({"greeting": b"554 no service"}, AwayError),
        ({"mail": b"451 busy"}, AwayError),
        ({"end": None}, AwayError),
        ({"end": b"drip"}, AwayError),
        ({"end": b"451 later"}, AwayError),
        ({"end": b"554 no"}, PermanentError),
        ({"rcpt": b"550 no such user"}, PermanentError),
    ],
)
def test_a_mail_server_that_hangs_drips_or_refuses_is_understood_in_time(
    smtp: Any, says: Any, meaning: type[Exception]
) -> None:
    smtp(**says)
    began = time.monotonic()
    with pytest.raises(meaning):
        hand_over(mail())
    assert time.monotonic() - began < 5 * TIMEOUT, "a bound against hanging, not a measure of speed"
