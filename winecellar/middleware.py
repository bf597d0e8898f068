"""What every request gets: an id, a strict content security policy, no cached private page, and 503, not 500, when the
database is away."""

import re
import time
import uuid
from collections.abc import Callable

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import resolve

from jobs import tracing
from jobs.database import is_away

log = structlog.get_logger(__name__)
Answer = Callable[[HttpRequest], HttpResponse]
FEEDS = "/feeds/v1/"
PROXY_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
RETRY_AFTER_SECONDS = 5


class RequestIdMiddleware:
    """Bind a request id to the logs and to the answer; a proxy's own id is kept when it is well-formed."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        request_id = given if PROXY_REQUEST_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"
        request.request_id = request_id  # type: ignore[attr-defined]
        began = time.perf_counter()
        said = request.META.get("HTTP_TRACEPARENT"), request.META.get("HTTP_TRACESTATE")
        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            tracing.request(str(request.method), *said) as traced,
        ):
            response = self.get_response(request)
            traced.answered(str(request.method), _route(request), response.status_code)
            # The path alone: what is searched for, and a key that somebody put into the address, is not ours to keep.
            log.info(
                "request",
                method=request.method,
                path=_without_key(request),
                status=response.status_code,
                ms=round(1000 * (time.perf_counter() - began)),
            )
        response["X-Request-ID"] = request_id
        return response


def _route(request: HttpRequest) -> str | None:
    """The pattern of its address, for its parts may be keys and names; None where nobody was found."""
    found = request.resolver_match
    return f"/{found.route.removesuffix('/?$')}" if found else None


def _without_key(request: HttpRequest) -> str:
    """The path, but for a link's key: whoever reads the logs should not be able to open it."""
    key = request.resolver_match.kwargs.get("key") if request.resolver_match else None
    return request.path.replace(key, "…") if key else request.path


class DatabaseAwayMiddleware:
    """Pages answer 503 with Retry-After while the database is down, full, read-only or out of slots."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, DatabaseError) or not is_away(exception):
            return None
        log.warning("database.away", path=request.path, error=type(exception).__name__)
        response = render(request, "503.html", status=503, using=None)
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response


class FeedsMiddleware:
    """Lets what machines send pass by the middleware behind this one: they have no session, no form and no cookie.

    Of that middleware, a feed needs that the host is one of ours, and an answer that says its length.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(FEEDS):
            return self.get_response(request)
        request.get_host()
        request.resolver_match = found = resolve(request.path_info)
        response: HttpResponse = found.func(request, *found.args, **found.kwargs)
        response.setdefault("Content-Length", str(len(response.content)))
        return response


class ContentSecurityPolicyMiddleware:
    """Only our own files, and no inline script: the pages need none."""

    POLICY = (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Content-Security-Policy", self.POLICY)
        return response


class PrivatePagesMiddleware:
    """What is shown to somebody signed in is kept by no browser and no proxy: after signing out, Back shows none."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            response.setdefault("Cache-Control", "private, no-store")
        return response
