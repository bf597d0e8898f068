"""A TCP proxy in front of a Unix-socket Postgres, which can swallow everything, as a broken network does."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards bytes both ways. In the black hole (`swallow`) connections stay open and nothing comes back."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.swallow = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open = True
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while self._open:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.target)
            except OSError:  # the server is gone, at the end of a test
                client.close()
                continue
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        doomed = False  # whoever was connected in the black hole never hears again
        with client, server, selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while self._open:
                for key, _ in selector.select(0.1):
                    with suppress(OSError):
                        data = key.fileobj.recv(65_536)  # type: ignore[union-attr]
                        if not data:
                            return
                        doomed = doomed or self.swallow.is_set()
                        if not doomed:
                            key.data.sendall(data)

    def close(self) -> None:
        self._open = False
        self._listener.close()
