"""Everybody sees their own write: what a browser wrote, and where the primary's log was then, is kept in its cookie.

Guarantee: after a request that may have written, the visitor's next pages come from a replica only once it has
replayed that position. A page whose replica fails in the middle is made once more, from the primary. Without replicas
configured there is none of this. Behind the sessions and the messages, in front of nothing that reads.
"""

from __future__ import annotations

import zlib
from datetime import timedelta
from functools import cache

import structlog
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import DatabaseError, connection, connections
from django.db import Error as AnyDatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from winecellar.middleware import Answer
from winecellar.replicas.reading import Reading, current
from winecellar.replicas.standby import Standby, primary_position

log = structlog.get_logger(__name__)
COOKIE, SALT = "written", "winecellar.replicas"
SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
# Past every position there is: the visitor reads from the primary until the cookie runs out.
NOWHERE = 2**64
# A replica that is used has what was committed REPLICA_MAX_LAG ago, so nobody needs the cookie for longer.
SLACK = timedelta(minutes=1)


@cache
def standbys() -> tuple[Standby, ...]:
    """One of each, for all threads of this process."""
    return tuple(Standby(alias) for alias in settings.REPLICAS)


class SeeYourOwnWriteMiddleware:
    def __init__(self, get_response: Answer) -> None:
        if not settings.REPLICAS:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(settings.REPLICA_NO_VISITORS):
            return self.get_response(request)
        reading = Reading(_standby_for(request), _written_at(request))
        token = current.set(reading)
        try:
            with connection.execute_wrapper(reading.note):
                response = self.get_response(request)
        finally:
            current.reset(token)
        if reading.wrote or request.method not in SAFE:
            _remember(response)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        """Whatever the replica would not do (it ended, it cancelled, it lacks a column that is new), the primary may.
        Only a page that wrote nothing is made again."""
        reading = current.get()
        if reading is None or reading.wrote or reading.replica is None or not isinstance(exception, AnyDatabaseError):
            return None
        if not connections[reading.replica.alias].errors_occurred:  # it was the primary's
            return None
        reading.replica.failed(exception)
        reading.stay_on_primary()
        log.warning("replica.page_again", path=request.path, error=type(exception).__name__)
        match = request.resolver_match
        assert match is not None, "a view has failed"
        try:
            response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
        except DatabaseError:
            return None  # the first error then goes the way of all errors
        return response


def _standby_for(request: HttpRequest) -> Standby | None:
    """The same one for the same visitor, or time would run backwards from page to page."""
    if request.method not in SAFE or request.path.startswith(settings.REPLICA_NEVER_FOR):
        return None
    who = request.COOKIES.get(settings.SESSION_COOKIE_NAME) or request.META.get("REMOTE_ADDR", "")
    return standbys()[zlib.crc32(who.encode(errors="replace")) % len(standbys())]


def _written_at(request: HttpRequest) -> int:
    text = request.get_signed_cookie(COOKIE, default=None, salt=SALT)
    return int(text) if text else 0


def _remember(response: HttpResponse) -> None:
    """The request's transactions have committed, or never will."""
    try:
        position = primary_position()
    except AnyDatabaseError:
        position = NOWHERE
    response.set_signed_cookie(
        COOKIE,
        str(position),
        salt=SALT,
        max_age=settings.REPLICA_MAX_LAG + SLACK,
        httponly=True,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )
