"""The adapter of a requests session that tells a deadline of each socket it opens: then the exchange ends in time.

For providers that are spoken to over HTTP, by mail and by money alike. No retries: who calls decides about those.
"""

from __future__ import annotations

import socket
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.poolmanager import PoolManager

from jobs.mail.deadline import Deadline


class Watched(HTTPAdapter):
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        deadline = self._deadline

        class Plain(HTTPConnection):
            def connect(self) -> None:
                super().connect()
                deadline.watch(self.sock)

        class Encrypted(HTTPSConnection):
            def _new_conn(self) -> socket.socket:  # before the handshake, which may drag on too
                sock = super()._new_conn()
                deadline.watch(sock)
                return sock

            def connect(self) -> None:
                super().connect()
                deadline.watch(self.sock)

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class EncryptedPool(HTTPSConnectionPool):
            ConnectionCls = Encrypted

        super().init_poolmanager(*args, **options)
        manager: PoolManager = self.poolmanager
        manager.pool_classes_by_scheme = {"http": PlainPool, "https": EncryptedPool}
