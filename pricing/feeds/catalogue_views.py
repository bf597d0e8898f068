"""PUT or POST /feeds/v1/catalogues, and GET /feeds/v1/catalogues/<id>: whole files from merchants. The edge.

Guarantee: 202 is said only after all of the file's bytes, and the instruction to take it, are committed; what becomes
of its rows is in the report. Who may call: a merchant with its feed key, about its own files.

transport → method → length → size → credentials → rate → media type → encoding → as_of → the body, piece by piece
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from pricing.catalogues import files, report
from pricing.contract import parse_time
from pricing.feeds import checks
from pricing.feeds.answers import Answer
from pricing.feeds.edge import answered
from pricing.feeds.errors import FeedError
from pricing.models import CatalogueFile, Merchant

log = structlog.get_logger(__name__)

MEDIA_TYPES = (
    *("text/csv", "text/tab-separated-values", "text/plain", "application/xml", "text/xml", "application/rss+xml"),
    *("application/atom+xml", "application/gzip", "application/x-gzip", "application/octet-stream"),
)
LONGEST_NAME = 200


@csrf_exempt  # nobody's browser has a feed key, and there is no cookie to abuse
def catalogues(request: HttpRequest) -> HttpResponse:
    """Keep a file and have it taken."""
    return answered(request, lambda _: _take(request, now=timezone.now()))


@csrf_exempt
def catalogue(request: HttpRequest, file_id: str) -> HttpResponse:
    """The report of a file, so far."""
    return answered(request, lambda _: _report(request, file_id, now=timezone.now()), status=200)


def _take(request: HttpRequest, *, now: datetime) -> Answer:
    checks.check_transport(request)
    checks.check_method(request, allowed=("PUT", "POST"))
    length = checks.check_length(request, most=settings.CATALOGUE_MAX_BYTES)
    merchant = _merchant(request, now)
    checks.check_media_type(request, {}, allowed=MEDIA_TYPES, any_charset=True)
    file = files.receive(
        merchant=merchant,
        name=_name(request),
        data=_blocks(request, length),
        as_of=_as_of(request, now),
        send=True,
        by="feed key",
        now=now,
    )
    return {"id": file.pk, "status": file.status, "sha256": file.sha256, "report": _address(request, file)}


def _report(request: HttpRequest, file_id: str, *, now: datetime) -> Answer:
    checks.check_transport(request)
    checks.check_method(request, allowed=("GET", "HEAD"))
    merchant = _merchant(request, now)
    file = CatalogueFile.objects.filter(pk=int(file_id), merchant=merchant).first()
    if file is None:
        raise FeedError(404, "unknown_file", "You have sent no such file, or its report is too old to be kept.")
    return report.as_json(file)


def _merchant(request: HttpRequest, now: datetime) -> Merchant:
    return checks.authenticate(request, None, 0, now).merchant


def _address(request: HttpRequest, file: CatalogueFile) -> str:
    return request.build_absolute_uri(reverse("feed-catalogue", args=[file.pk]))


def _name(request: HttpRequest) -> str:
    name = request.GET.get("name", "").strip()
    if len(name) > LONGEST_NAME or not name.isprintable():
        message = f"A file's name has at most {LONGEST_NAME} printable characters."
        raise FeedError(422, "invalid_name", message, field="name")
    return name or "catalogue"


def _as_of(request: HttpRequest, now: datetime) -> datetime:
    """The time of which the prices are; now, where the address does not say."""
    text = request.GET.get("as_of")
    if text is None:
        return now
    try:
        as_of = parse_time(text.replace(" ", "+"))  # a plus sign in an address is a space
    except ValueError as error:
        raise FeedError(422, "invalid_time", f"as_of is {error}.", field="as_of") from None
    if as_of > now + settings.FEED_CLOCK_TOLERANCE or as_of.year < settings.FEED_EARLIEST:
        raise FeedError(422, "time_out_of_range", "That time is in the future, or long past.", field="as_of")
    return as_of


def _blocks(request: HttpRequest, length: int) -> Iterator[bytes]:
    left = length
    while left:
        try:
            block = request.read(min(left, settings.CATALOGUE_PIECE_BYTES))
        except UnreadablePostError:
            block = b""
        if not block:
            raise FeedError(400, "incomplete_body", "The body ended before its Content-Length.")
        left -= len(block)
        yield block
