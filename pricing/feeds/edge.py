"""What all feeds' views have around them: an answer, a refusal, or 503 while the database is away.

Guarantee: 202 is said only after the work has returned, and so has committed; a refusal has the one shape of errors.py.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog
from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from jobs.database import connection_is_lost, is_away, sqlstate
from pricing.feeds.answers import Answer
from pricing.feeds.errors import FeedError, unavailable

log = structlog.get_logger(__name__)

LOCK_NOT_AVAILABLE = "55P03"
RETRY_SOON_SECONDS, RETRY_LATER_SECONDS = 1, 5
BELIEVED_SECONDS = 1.0
_used = threading.local()  # as Django's connections are


def answered(request: HttpRequest, work: Callable[[str], Answer], *, status: int = 202) -> HttpResponse:
    """Do the work, which gets the request's id, and render what it answers or raises."""
    request_id: str = getattr(request, "request_id", "")
    _skip_the_check_of_a_busy_connection()
    with structlog.contextvars.bound_contextvars(merchant_id=None):
        try:
            answer = work(request_id)
        except FeedError as error:
            log.info("feed.refused", status=error.status, code=error.code, field=error.field)
            return error.as_response(request_id)
        except DatabaseError as error:
            if not is_away(error):
                raise
            log.warning("feed.database_away", sqlstate=sqlstate(error), error=type(error).__name__)
            if connection_is_lost(error):
                connection.close()  # outside a transaction nobody else has noticed
            busy = sqlstate(error) == LOCK_NOT_AVAILABLE
            wait = RETRY_SOON_SECONDS if busy else RETRY_LATER_SECONDS
            return unavailable(retry_after=wait).as_response(request_id)
    _used.at = time.monotonic()
    response = JsonResponse({**answer, "request_id": request_id}, status=status)
    response["Cache-Control"] = "no-store"
    return response


def _skip_the_check_of_a_busy_connection() -> None:
    """Django asks a kept connection whether it still lives, a round trip. One that did just now is believed; if it has
    died since, the sender gets a 503 and comes again, and the next request finds a new one."""
    since = time.monotonic() - getattr(_used, "at", 0.0)
    if connection.connection is not None and since < BELIEVED_SECONDS and not connection.errors_occurred:
        connection.health_check_done = True  # type: ignore[attr-defined]
