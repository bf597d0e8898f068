"""The web server: `gunicorn -c winecellar/gunicorn_conf.py winecellar.wsgi`.

Listens on this machine only unless BIND says otherwise; TLS, and clients that send a byte now and then, belong to a
proxy in front. Beyond gunicorn's own: a body that the application leaves unread is not read at all (the answer says
“Connection: close”), “100 Continue” is said only once the application asks for the body, and a client that never
hangs up keeps one thread waiting for two seconds, not the whole worker.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import suppress
from typing import Any

from gunicorn.http import wsgi  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

# A connection that neither sends nor takes a byte for so long is given up, or it would hold a thread for ever.
SILENCE_SECONDS = int(os.environ.get("WEB_SILENCE_SECONDS", "10"))
# After the last answer: how long, and for how many bytes, we wait for the client to have read it.
HANG_UP_SECONDS, HANG_UP_BYTES = 2.0, 65_536


class Worker(ThreadWorker):
    """gunicorn's threads, but hanging up happens in the thread that answered. gunicorn does it in the loop that accepts
    all connections, and waits there for clients that do not hang up themselves."""

    def handle(self, conn: Any) -> Any:
        keep = super().handle(conn)
        if keep is False:
            hang_up(conn.sock)
        return keep


def hang_up(sock: socket.socket) -> None:
    """Let the client read our last words; what is left of the connection then closes without waiting."""
    deadline, received = time.monotonic() + HANG_UP_SECONDS, 0
    with suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
        while received < HANG_UP_BYTES and (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            data = sock.recv(8192)
            if not data:
                break
            received += len(data)
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


class BodyOnDemand:
    """A body reader that knows whether the application wanted the body.

    Until it is read the connection is one to be closed after the answer: to keep it, the unread body would have to
    be received first, however long it is.
    """

    def __init__(self, request: Any, reader: Any, sock: socket.socket) -> None:
        self.request, self.reader, self.sock = request, reader, sock
        self.waits_for_continue = request._expected_100_continue
        self.keeps_open = not request.must_close
        request._expected_100_continue = False
        request.must_close = True

    def read(self, size: int) -> bytes:
        if self.waits_for_continue:
            self.waits_for_continue = False
            self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        data: bytes = self.reader.read(size)
        if self.keeps_open:
            self.request.must_close = False
        return data


def when_ready(server: Any) -> None:
    """Set the time limits on the listening sockets, whose connections inherit them."""
    limit = struct.pack("ll", SILENCE_SECONDS, 0)
    for listener in server.LISTENERS:
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def pre_request(worker: Any, request: Any) -> None:
    """Before the application runs: nothing of the body is read, and none invited, until it asks."""
    if request.body is not None and has_body(request):
        request.body.reader = BodyOnDemand(request, request.body.reader, request.unreader.sock)


def has_body(request: Any) -> bool:
    return any(
        name == "TRANSFER-ENCODING" or (name == "CONTENT-LENGTH" and value.strip("0") != "")
        for name, value in request.headers
    )


bind = os.environ.get("BIND", "127.0.0.1:8000")
worker_class = Worker
# Each thread keeps a database connection of its own: workers * threads of the server's max_connections.
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
threads = int(os.environ.get("WEB_THREADS", "8"))
keepalive = 75  # seconds; longer than the proxies' usual minute, so that they hang up first
timeout = 30  # a worker whose main loop is silent for this long is replaced
graceful_timeout = 20  # and one told to stop may finish what it has begun
limit_request_line = 4094
limit_request_fields = 60
limit_request_field_size = 8190  # a longer one is 431
http_parser = "python"  # the one whose limits and refusals are tested
control_socket_disable = True
errorlog = "-"
accesslog = None  # a line per request would hold the address with its query; the application logs what it did

wsgi.SERVER = "winecellar"  # which server, in which version, is nobody's business
