"""For every page: how much the person has not read. One query, and only where a template asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from django.http import HttpRequest

from alerts import centre


def unread(request: HttpRequest) -> dict[str, Callable[[], str]]:
    """`unread`: “3”, “99+”, or nothing; for whoever is signed in."""

    @cache
    def count() -> str:
        user_id = request.user.pk
        number = centre.unread(user_id=user_id) if user_id is not None else 0
        return f"{centre.MOST_COUNTED - 1}+" if number >= centre.MOST_COUNTED else str(number or "")

    return {"unread": count}
