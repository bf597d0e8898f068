"""What machines ask: is this process there, is it ready, what do the gauges say. The first of the middleware.

Guarantee: no session, no cookie, no redirect, and an answer whatever name the request uses for us; 503 with a word when
not ready. A probe takes no more of the database than the one statement that it asks about.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST

from jobs.gauges import export
from jobs.gauges.reading import read
from jobs.schedule import store
from winecellar.deployment.applied import difference

Answer = Callable[[HttpRequest], HttpResponse]
PLAIN = "text/plain; charset=utf-8"


class MachinesMiddleware:
    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = ANSWERS.get(request.path_info)
        if answer is None:
            return self.get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        response = answer(request)
        response["Cache-Control"] = "no-store"
        response["Content-Length"] = str(len(response.content))
        return response


def healthz(request: HttpRequest) -> HttpResponse:
    """This process answers. Nothing else is asked: a process is not restarted because the database is away."""
    return HttpResponse("ok\n", content_type=PLAIN)


class _Migrated:
    """Whether this code's migrations are applied. Once they are they stay so, and it is not asked again."""

    def __init__(self) -> None:
        self.known = False

    def __call__(self) -> bool:
        if not self.known:
            self.known = not difference().missing
        return self.known


migrated = _Migrated()


def readyz(request: HttpRequest) -> HttpResponse:
    """Whether requests may be sent here: the database answers, and it has this code's tables."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        ready = migrated()
    except Error:
        return HttpResponse("database-away\n", status=503, content_type=PLAIN)
    if not ready:
        return HttpResponse("migrations-missing\n", status=503, content_type=PLAIN)
    return HttpResponse("ready\n", content_type=PLAIN)


def metrics(request: HttpRequest) -> HttpResponse:
    """For who has the token; where there is none, for this machine alone if it may. Else it is not there."""
    if settings.METRICS_TOKEN:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        right = secrets.compare_digest(given.strip().encode(), settings.METRICS_TOKEN.encode())
        if scheme.lower() != "bearer" or not right:
            return HttpResponse(status=401, headers={"WWW-Authenticate": 'Bearer realm="metrics"'})
    elif not (settings.METRICS_FROM_LOOPBACK and _is_from_here(request)):
        return HttpResponse(status=404)
    try:
        body = export.text(read(store.now()))
    except Error:
        return HttpResponse("database-away\n", status=503, content_type=PLAIN)
    return HttpResponse(body, content_type=CONTENT_TYPE_LATEST)


def _is_from_here(request: HttpRequest) -> bool:
    """What a proxy passes on comes from its own address, so that a request with a proxy's header is not from here."""
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


ANSWERS: dict[str, Answer] = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
