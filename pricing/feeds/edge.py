"""What all feeds' views have around them: an answer, a refusal, or 503 while the database is away.

Guarantee: 202 is said only after the work has returned, and so has committed; a refusal has the one shape of errors.py.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse

from jobs.database import is_away, sqlstate
from pricing.feeds.answers import Answer
from pricing.feeds.errors import FeedError, unavailable

log = structlog.get_logger(__name__)

LOCK_NOT_AVAILABLE = "55P03"
RETRY_SOON_SECONDS, RETRY_LATER_SECONDS = 1, 5


def answered(request: HttpRequest, work: Callable[[str], Answer], *, status: int = 202) -> HttpResponse:
    """Do the work, which gets the request's id, and render what it answers or raises."""
    request_id: str = getattr(request, "request_id", "")
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
            busy = sqlstate(error) == LOCK_NOT_AVAILABLE
            wait = RETRY_SOON_SECONDS if busy else RETRY_LATER_SECONDS
            return unavailable(retry_after=wait).as_response(request_id)
    response = JsonResponse({**answer, "request_id": request_id}, status=status)
    response["Cache-Control"] = "no-store"
    return response
