"""A webhook's receiver on loopback that does what a script says, with a certificate of its own authority.

The guard refuses loopback, as it must; tests say which address stands for a public one.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import pytest

from alerts.channels import outside
from tests import certificates

NAME = "hooks.test"
Behaviour = Callable[[ssl.SSLSocket], None]


class Receiver:
    """Takes each request whole, notes it, and answers by the script; the last behaviour repeats."""

    def __init__(self, pem: Path, script: list[Behaviour]) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections = 0
        self._script = script
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pem)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}/told?by=winecellar"

    def then(self, *script: Behaviour) -> None:
        self._script = list(script)

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._take, args=(plain,), daemon=True).start()

    def _take(self, plain: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(plain, server_side=True) as encrypted:
            stream = encrypted.makefile("rb")
            line = stream.readline().decode().strip()
            headers = {}
            while header := stream.readline().decode().strip():
                name, _, value = header.partition(": ")
                headers[name.lower()] = value
            self.requests.append((line, headers, stream.read(int(headers.get("content-length", 0)))))
            behaviour = self._script.pop(0) if len(self._script) > 1 else self._script[0]
            behaviour(encrypted)


def answers(status: int, *headers: str) -> Behaviour:
    text = "\r\n".join([f"HTTP/1.1 {status} So", "Content-Length: 0", *headers, "", ""])
    return lambda encrypted: encrypted.sendall(text.encode())


def drips(encrypted: ssl.SSLSocket) -> None:
    """A byte at a time of headers that never end: each meets the timeout of a single read."""
    done = threading.Event()
    encrypted.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not done.wait(0.05):
        encrypted.sendall(b"a")


def breaks_off(encrypted: ssl.SSLSocket) -> None:
    encrypted.sendall(b"HTTP/1.1 20")


@contextmanager
def receiving(folder: Path, patch: pytest.MonkeyPatch, *script: Behaviour) -> Iterator[Receiver]:
    """A receiver whose name resolves to loopback, which stands for the public internet."""
    pem = certificates.issue(folder / "receiver.pem", NAME).pem
    patch.setenv("SSL_CERT_FILE", str(pem))
    real = outside.is_public
    patch.setattr(outside, "is_public", lambda a: ip_address(a).is_loopback or real(a))
    resolve_to(patch, "127.0.0.1")
    receiver = Receiver(pem, list(script) or [answers(204)])
    try:
        yield receiver
    finally:
        receiver.close()


def resolve_to(patch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Every name resolves to these; returns the list of names that were asked for."""
    asked: list[str] = []

    def resolve(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        kinds = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
        return [(k, socket.SOCK_STREAM, 6, "", (a, port)) for k, a in zip(kinds, addresses, strict=True)]

    patch.setattr(outside.socket, "getaddrinfo", resolve)
    return asked
