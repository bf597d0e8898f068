"""DATABASE_URL: where our Postgres is, or which servers may be it. What it says becomes Django's settings.

    postgres://user:password@host/winecellar                   one server
    postgres://user:password@db-1,db-2/winecellar              the one of them that takes writes, after a failover too
    postgres://user@/winecellar?host=%2Fsocket1,%2Fsocket2     the same by sockets

Guarantee: of several servers only one that takes writes is used, unless the URL itself says otherwise. Pure.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import environ

# libpq asks them in turn; a standby, or a primary that was demoted, is passed by.
ONE_THAT_TAKES_WRITES = "read-write"


def read(url: str) -> dict[str, Any]:
    """The settings. Raises ValueError in words for a pool, and where ports are named for some of several hosts."""
    config: dict[str, Any] = environ.Env.db_url_config(url)
    options: dict[str, Any] = config.setdefault("OPTIONS", {})
    if "pool" in options:  # Django's: it gives connections back after each request, and a worker's lane never asks
        raise ValueError(
            "DATABASE_URL: take pool away. A thread keeps its connection here; what shares a server's connections is a"
            " pooler in front of it, such as PgBouncer (docs/sizing.md)."
        )
    hosts = str(options.get("host") or config.get("HOST") or "").split(",")
    if len(hosts) > 1:
        _check_ports(url)
        options.setdefault("target_session_attrs", ONE_THAT_TAKES_WRITES)
    return config


def _check_ports(url: str) -> None:
    """Of “a,b:5433” libpq would take the port for both, which nobody means who wrote it."""
    named = unquote(urlsplit(url).netloc).rpartition("@")[2].split(",")
    with_port = [host for host in named if host.rpartition("]")[2].rpartition(":")[2].isdigit()]
    if with_port and len(with_port) != len(named):
        raise ValueError("DATABASE_URL: name a port for each of the hosts, or for none of them.")
