"""Somebody's notifications as an Atom feed, at an address that its owner may make anew. Reads only.

Guarantee: an entry's id is its (alert, event), for ever; at most ATOM_ENTRIES of them; a reader that has the newest is
told so without the document. An address that is nobody's is a 404. Nobody signs in here: the address is the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from urllib.parse import urlsplit

from allauth.core.internal import ratelimit
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.feedgenerator import Atom1Feed
from django.utils.http import http_date, quote_etag
from django.views.decorators.http import require_safe

from alerts import told
from alerts.channels.models import AtomFeed
from alerts.channels.services import digest_of
from alerts.models import Notification

MEDIA_TYPE = "application/atom+xml; charset=utf-8"
RETRY_AFTER_SECONDS = 600
LAYOUT = "1"  # part of the ETag: changed with what an entry says


@require_safe
def atom_feed(request: HttpRequest, key: str) -> HttpResponse:
    response = _limited(request, key) or _answer(request, key)
    response["X-Robots-Tag"] = "noindex, nofollow"
    response["Cache-Control"] = "private, no-cache"
    response["Referrer-Policy"] = "no-referrer"
    return response


def _limited(request: HttpRequest, key: str) -> HttpResponse | None:
    """Counted before the address is looked up, so that guessing is limited as reading is."""
    rates = {"atom": settings.ATOM_RATES}
    if ratelimit.consume(request, app="alerts", action="atom", key=key, config=rates, limit_get=True):
        return None
    response = HttpResponse("Asked too often. Ask again later.\n", status=429, content_type="text/plain; charset=utf-8")
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def _answer(request: HttpRequest, key: str) -> HttpResponse:
    feed = AtomFeed.objects.filter(token_sha256=digest_of(key), user__is_active=True).first()
    if feed is None:
        raise Http404("No feed at this address")
    entries = list(
        Notification.objects.filter(alert__user_id=feed.user_id)
        .select_related("alert__wine")
        .order_by("-created_at", "-id")[: settings.ATOM_ENTRIES]
    )
    etag = _etag(feed, entries)
    changed = max([entry.created_at for entry in entries], default=feed.created_at)
    response = get_conditional_response(request, etag=etag, last_modified=int(changed.timestamp()))
    if response is None:
        response = HttpResponse(_document(request, entries), content_type=MEDIA_TYPE)
    assert isinstance(response, HttpResponse)
    response["ETag"] = etag
    response["Last-Modified"] = http_date(changed.timestamp())
    return response


def _etag(feed: AtomFeed, entries: Sequence[Notification]) -> str:
    """Of which entries there are, for none ever changes: with a deleted alert its entries go."""
    shown = ",".join([LAYOUT, str(feed.pk), *(str(entry.pk) for entry in entries)])
    return quote_etag(hashlib.sha256(shown.encode()).hexdigest()[:32])


def _document(request: HttpRequest, entries: Sequence[Notification]) -> str:
    feed = Atom1Feed(
        title="Winecellar: my alerts",
        link=settings.SITE_URL + reverse("notifications"),
        feed_url=settings.SITE_URL + request.path,
        feed_guid=f"tag:{_authority()}:alerts",
        description="",
        subtitle="What your alerts have told you.",
        language="en",
        author_name="Winecellar",
    )
    for entry in entries:
        feed.add_item(
            title=told.headline(entry),
            link=told.wine_url(entry),
            description=f"{told.headline(entry)}. The alert: {told.alert_url(entry)}",
            unique_id=f"tag:{_authority()}:alert/{entry.alert_id}/{entry.event_id}",
            pubdate=entry.created_at,
            updateddate=entry.created_at,
        )
    return str(feed.writeString("utf-8"))


def _authority() -> str:
    """RFC 4151: whose names these are, and since when."""
    return f"{urlsplit(settings.SITE_URL).hostname or 'localhost'},2026"
