"""A mail provider's HTTP API on this machine, in the shape of Resend's, behaving as a script says. For tests and demo.

`python -m winecellar.demo.mail_api --log var/taken.jsonl --script "ok*3, hang:8*2"` prints its port as one JSON line.
Guarantee: a mail is in the log, one line with its key, before anything is said about it; a key is taken once for ever,
across restarts too, and the same key with another mail is refused, as Resend does. Imports no Django.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from winecellar.demo.mail_script import Behaviour, Script

LARGEST = 2_000_000
DRIP_SECONDS = 0.2  # between two bytes: no read's timeout is met
Take = Callable[[dict[str, Any]], None]


class Taken:
    """What was taken: the key and the mail's digest in a file that is only added to."""

    def __init__(self, log: Path, take: Take = lambda mail: None) -> None:
        self._log, self._take = log, take
        self._lock = threading.Lock()
        lines = log.read_text().splitlines() if log.exists() else []
        self._digests: dict[str, str] = {line["key"]: line["digest"] for line in map(json.loads, lines)}

    def take(self, key: str, body: bytes, mail: dict[str, Any]) -> bool:
        """Take it, or know it already; False where the key belongs to another mail."""
        digest = hashlib.sha256(body).hexdigest()
        with self._lock:
            if key in self._digests:
                return self._digests[key] == digest
            with self._log.open("a") as file:
                file.write(json.dumps({"key": key, "digest": digest, "to": mail.get("to"), "at": time.time()}) + "\n")
            self._digests[key] = digest
            self._take(mail)
            return True


class ApiServer(ThreadingHTTPServer):
    """Listens on 127.0.0.1; `requests` counts what came, whatever became of it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, taken: Taken, script: Script) -> None:
        super().__init__(("127.0.0.1", port), _Api)
        self.taken, self.script = taken, script
        self.requests: list[float] = []
        self.connections = 0

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> ApiServer:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever sent it did not wait: that is what it is for."""


class _Api(BaseHTTPRequestHandler):
    server: ApiServer
    protocol_version = "HTTP/1.1"  # so that connections are kept

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), LARGEST))
        if self.path != "/emails":
            return self._say(404, {"name": "not_found"})
        if not self.headers.get("Authorization", "").startswith("Bearer "):
            return self._say(401, {"name": "missing_api_key"})
        self.server.requests.append(time.monotonic())
        return self._behave(self.server.script.next(), body)

    def _behave(self, behaviour: Behaviour, body: bytes) -> None:
        key = self.headers.get("Idempotency-Key") or f"none-{time.monotonic_ns()}"
        if behaviour.takes and not self.server.taken.take(key, body, json.loads(body)):
            return self._say(409, {"name": "invalid_idempotent_request"})
        if behaviour.kind in {"hang", "taken-hang"}:
            time.sleep(behaviour.seconds or 0.0)
        if behaviour.kind in {"reset", "taken-reset"}:
            self.close_connection = True
            return None
        if behaviour.kind == "drip":
            return self._drip()
        if behaviour.kind == "garbage":
            return self._say(200, None)
        if behaviour.takes:
            return self._say(200, {"id": hashlib.sha256(key.encode()).hexdigest()[:32]})
        wait = behaviour.seconds if behaviour.status else None
        return self._say(behaviour.status or 503, {"name": "application_error"}, retry_after=wait)

    def _say(self, status: int, document: dict[str, str] | None, retry_after: float | None = None) -> None:
        content = b"<html>a proxy's page" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if document else "text/html")
        self.send_header("Content-Length", str(len(content)))
        if retry_after is not None:
            self.send_header("Retry-After", f"{retry_after:g}")
        self.end_headers()
        self.wfile.write(content)

    def _drip(self) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n" + b" " * 600:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(DRIP_SECONDS)

    def log_message(self, format: str, *args: object) -> None:
        """The log of what was taken is enough."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m winecellar.demo.mail_api", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--script", type=Script, default=Script())
    chosen = parser.parse_args(arguments)
    server = ApiServer(chosen.port, Taken(chosen.log), chosen.script).start()
    print(json.dumps({"port": server.port}), flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
