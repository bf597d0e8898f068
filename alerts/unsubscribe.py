"""The links that end mails: what they say, signed, so that nobody needs to sign in and nobody can make one up.

Guarantee: the same wish is the same link for ever, so that every try of a mail is the same bytes; a link names no
address; one that is not ours reads as None, whatever was done to it. Used by whoever composes mail; pages in
unsubscribe_views.py, what a wish changes in wishes.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.urls import reverse

_WISH = re.compile(r"(alert)-(\d{1,18})-(\d{1,18})|(alerts|digest)-(\d{1,18})", re.ASCII)


class Scope(StrEnum):
    ALERT = "alert"  # one alert: it is paused
    ALERTS = "alerts"  # all mails about alerts
    DIGEST = "digest"  # the weekly mail


@dataclass(frozen=True)
class Wish:
    """Who wants to hear no more, and of what. `alert_id` is that of Scope.ALERT alone."""

    scope: Scope
    user_id: int
    alert_id: int | None = None

    def __post_init__(self) -> None:
        assert (self.alert_id is not None) is (self.scope is Scope.ALERT)


def token(wish: Wish) -> str:
    """`alert-12-345.…`: readable, and signed. Without a time: a mail is opened years later, and must then work."""
    parts = [wish.scope.value, wish.user_id] + ([] if wish.alert_id is None else [wish.alert_id])
    return _signer().sign("-".join(map(str, parts)))


def read(key: str) -> Wish | None:
    try:
        found = _WISH.fullmatch(_signer().unsign(key))
    except BadSignature:
        return None
    if found is None:
        return None
    if found[1]:
        return Wish(Scope.ALERT, int(found[2]), int(found[3]))
    return Wish(Scope(found[4]), int(found[5]))


def link(wish: Wish) -> str:
    return str(settings.SITE_URL) + reverse("unsubscribe", args=[token(wish)])


def headers(wish: Wish) -> dict[str, str]:
    """RFC 8058: a mailbox ends the mails by one POST. It believes them only where DKIM signs both (docs/mail.md)."""
    return {"List-Unsubscribe": f"<{link(wish)}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}


def _signer() -> Signer:
    """Made anew: it keeps the keys, SECRET_KEY_FALLBACKS included. The salt keeps out other signatures of ours."""
    return Signer(salt="alerts.unsubscribe", sep=".")
