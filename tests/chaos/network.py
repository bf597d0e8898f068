"""A network between a process and Postgres that can be broken in every way: a TCP proxy before the server's socket.

    lose replies    the next answer of each connection is dropped, then the connection is cut: was it committed?
    reset           every connection is reset
    slow            each piece takes two seconds
    byte by byte    answers arrive in pieces of one byte
    black hole      nothing comes back; when the route is there again, the other end knows the connection no more

All connections of one process to the server go by one of these, whose port is in its DATABASE_URL.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress

WELL = "well"
SLOW_SECONDS = 2.0
LONGEST_DRIPPED = 400  # bytes; the rest of a long answer comes whole, or a batch would take minutes
RESET = struct.pack("ii", 1, 0)


class Network:
    """Forwards while `mode` is WELL. Each direction of a connection has a thread: none holds up another."""

    def __init__(self, target: str) -> None:
        self.mode = WELL
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def break_(self, mode: str) -> None:
        self.mode = mode
        if mode == "reset":
            with self._lock:
                connected = list(self._open)
            for sock in connected:
                _reset(sock)

    def heal(self) -> None:
        self.mode = WELL

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                if self.mode == "reset":
                    raise ConnectionError
                server.connect(self._target)
            except OSError:
                server.close()
                _reset(client)
                continue
            with self._lock:
                self._open.add(client)
            for source, sink, back in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._forward, args=(source, sink, back), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, back: bool) -> None:
        try:
            while data := source.recv(65_536):
                mode = self.mode
                if mode == "black hole":
                    self._swallow(source)
                    return
                if back and mode == "lose replies":
                    return  # the answer was there, and nobody gets it
                if mode == "slow":
                    time.sleep(SLOW_SECONDS)
                if back and mode == "byte by byte":
                    for byte in data[:LONGEST_DRIPPED]:
                        sink.sendall(bytes([byte]))
                    data = data[LONGEST_DRIPPED:]
                sink.sendall(data)
        except OSError:
            pass
        finally:
            # Closing alone would leave the other thread's recv, and so the peer, hanging.
            for sock in (source, sink):
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
            with self._lock:
                self._open.discard(source)
                self._open.discard(sink)
            source.close()

    def _swallow(self, source: socket.socket) -> None:
        """Until the route is back, or the sender gives up."""
        source.settimeout(0.2)
        while self.mode == "black hole":
            with suppress(TimeoutError):
                if not source.recv(65_536):
                    return


def _reset(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        sock.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        sock.close()
