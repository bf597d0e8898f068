"""Pings an outside monitor, in the manner of healthchecks.io: /start, success, /fail, for each job and the watchman.

Guarantee: never inside a transaction, over within settings.MONITOR_TIMEOUT whatever the other side does, and never an
error for the caller. Does nothing unless settings.MONITOR_PING_URL is set.
"""

from __future__ import annotations

import threading

import structlog
import urllib3
from django.conf import settings

from jobs.database import in_transaction

log = structlog.get_logger(__name__)


def started(name: str) -> None:
    _ping(f"{name}/start")


def succeeded(name: str) -> None:
    _ping(name)


def failed(name: str) -> None:
    _ping(f"{name}/fail")


def _ping(path: str) -> None:
    if not settings.MONITOR_PING_URL:
        return
    assert not in_transaction(), "no call to the outside while a transaction is open"
    # In a thread that is left behind when it is late: a server that sends a byte a second meets every read's timeout.
    ping = threading.Thread(target=_request, args=(path,), name="monitor-ping", daemon=True)
    ping.start()
    ping.join(settings.MONITOR_TIMEOUT.total_seconds())
    if ping.is_alive():
        log.warning("monitor.late", path=path)


def _request(path: str) -> None:
    try:
        response = urllib3.request(
            "POST",
            f"{settings.MONITOR_PING_URL}/{path}",
            timeout=settings.MONITOR_TIMEOUT.total_seconds(),
            retries=False,  # neither again nor after a redirect: the next ping comes by itself
            preload_content=False,
        )
        response.close()
    except urllib3.exceptions.HTTPError as error:
        log.warning("monitor.unreachable", path=path, error=type(error).__name__)
    else:
        if response.status >= 400 or response.get_redirect_location():
            log.warning("monitor.refused", path=path, status=response.status)
