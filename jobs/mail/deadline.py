"""An exchange over sockets that ends at its deadline, however it is dragged out.

A socket's timeout is for one read: a server that sends a byte a second never meets it. So a timer, in a thread of its
own, shuts the sockets down that the exchange has opened; whoever reads from one then meets its end. For backends.py.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Deadline:
    """The sockets of one connection, which one thread uses at a time."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._exchange = 0
        self._over = False

    def watch(self, sock: socket.socket) -> None:
        """From now on shut this one down too; at once if time is up. Those that are closed are forgotten."""
        with self._lock:
            self._sockets = [each for each in self._sockets if each.fileno() != -1] + [sock]
            if self._over:
                _shut(sock)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Let what happens inside take so long. Raises TimeoutError where it was ended, whatever it made of that."""
        with self._lock:
            self._exchange += 1
            self._over = False
        timer = threading.Timer(seconds, self._end, [self._exchange])
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:
            if self._over:
                raise TimeoutError("the exchange took too long") from error
            raise
        finally:
            timer.cancel()

    def _end(self, exchange: int) -> None:
        with self._lock:
            if exchange != self._exchange:
                return  # it was done at the last moment, and another has begun
            self._over = True
            for sock in self._sockets:
                _shut(sock)


def _shut(sock: socket.socket) -> None:
    with suppress(OSError):  # closed, or never connected
        sock.shutdown(socket.SHUT_RDWR)
