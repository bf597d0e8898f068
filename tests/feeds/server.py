"""The real web server for tests: gunicorn with the project's own configuration, on a port of its own, against the
test database. Started and stopped by process id."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.db import connection

from winecellar import embedded

ROOT = Path(embedded.__file__).parent.parent
START_SECONDS = 60.0
ANSWER_SECONDS = 30.0


def database_url() -> str:
    """Where the tests' own database is: the development URL with another name in it."""
    parts = urlsplit(os.environ.get("DATABASE_URL") or embedded.default().url())
    return urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))


class Server:
    def __init__(self, log: Path, **environment: str) -> None:
        self.log = log
        # The port is ours before the server starts, so nobody can take it in between.
        with socket.create_server(("127.0.0.1", 0)) as listener, log.open("wb") as stderr:
            self.port = listener.getsockname()[1]
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "-c", "winecellar/gunicorn_conf.py", "winecellar.wsgi"],
                cwd=ROOT,
                env={
                    **os.environ,
                    "DATABASE_URL": database_url(),
                    "BIND": f"fd://{listener.fileno()}",
                    "WEB_CONCURRENCY": "1",
                    "LOG_LEVEL": "DEBUG",
                    "PYTHONWARNINGS": "ignore",
                    **environment,
                },
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
            )
        self._wait()

    def running(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if not self.running():
                raise RuntimeError(f"The server ended:\n{self.log.read_text()[-2000:]}")
            try:
                status, *_ = self.request("GET", timeout=1)
            except OSError:
                time.sleep(0.05)
                continue
            assert status == 405
            return
        self.stop()
        raise RuntimeError(f"The server did not answer in time:\n{self.log.read_text()[-2000:]}")

    def request(
        self, method: str, body: bytes = b"", headers: dict[str, str] | None = None, timeout: float = ANSWER_SECONDS
    ) -> tuple[int, dict[str, str], Any]:
        """One request over a connection of its own: status, headers, body (parsed where it is JSON)."""
        http_connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            http_connection.request(method, "/feeds/v1/price-changes", body or None, headers or {})
            response = http_connection.getresponse()
            content = response.read()
            named = {name.lower(): value for name, value in response.getheaders()}
            if named.get("content-type") == "application/json" and content:
                return response.status, named, json.loads(content)
            return response.status, named, content
        finally:
            http_connection.close()

    def post(self, key: str, document: Any, **headers: str) -> tuple[int, dict[str, str], Any]:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        sent = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        return self.request(
            "POST", body, {**sent, **{name.replace("_", "-"): value for name, value in headers.items()}}
        )

    def raw(self, *parts: bytes) -> "Conversation":
        """A connection on which exactly these bytes were sent."""
        return Conversation(self.port, parts)


class Conversation:
    """A raw connection: send bytes, read what the server says until it hangs up or falls silent."""

    def __init__(self, port: int, parts: tuple[bytes, ...]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS)
        for part in parts:
            self.send(part)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read_head(self) -> str:
        """The status line and headers of one answer, lower case; its body is left unread."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = self.socket.recv(1)
            if not piece:
                break
            head += piece
        return head.decode("latin-1").lower()

    def read_all(self) -> str:
        """Everything until the server hangs up; raises TimeoutError when it does not."""
        said = b""
        while piece := self.socket.recv(65536):
            said += piece
        return said.decode("latin-1")

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
