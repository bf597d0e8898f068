"""A form that arrives while its sender is being erased: they are signed out by then, and nothing of it is written.

Their row is gone when it is locked, or the schema refuses what would belong to nobody; without this that would be a
500. Called by Django alone.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.contrib.auth.views import redirect_to_login
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse

from jobs.database import sqlstate
from winecellar.accounts.models import User

log = structlog.get_logger(__name__)
FOREIGN_KEY = "23503"


class ErasedMeanwhileMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """To the page to sign in, as any later request of theirs."""
        is_of_nobody = isinstance(exception, IntegrityError) and sqlstate(exception) == FOREIGN_KEY
        if not (is_of_nobody or isinstance(exception, User.DoesNotExist)):
            return None
        if request.user.pk is None or User.objects.filter(pk=request.user.pk).exists():
            return None
        log.info("account.erased_meanwhile", path=request.path)
        return redirect_to_login(request.path)
