"""What the feed checks of a request before it looks at the body's meaning, in the order in which it is checked.

Each check returns what the next needs or raises FeedError. Called by the views of the feeds.
"""

from __future__ import annotations

from datetime import datetime
from urllib.parse import unquote_plus

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.http.request import UnreadablePostError

from pricing import keys
from pricing.feeds.errors import FeedError
from pricing.models import Merchant

log = structlog.get_logger(__name__)

LONGEST_LENGTH = 12  # digits of a Content-Length that is worth converting
CHALLENGE = 'Bearer realm="winecellar feeds"'


def check_transport(request: HttpRequest) -> None:
    """A key that came over plain HTTP has been seen by others; better to say so than to redirect and take it anyway."""
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise FeedError(403, "https_required", "Send prices over https, and have your key replaced: it was readable.")


def check_method(request: HttpRequest) -> None:
    if request.method != "POST":
        raise FeedError(405, "method_not_allowed", "Send prices by POST.", headers={"Allow": "POST"})


def check_length(request: HttpRequest) -> int:
    """The body's length as declared, in bytes; at most FEED_MAX_BODY_BYTES."""
    declared = request.META.get("CONTENT_LENGTH", "")
    if not declared or "HTTP_TRANSFER_ENCODING" in request.META:
        raise FeedError(411, "length_required", "Send the body's Content-Length, not a chunked body.")
    if not (declared.isascii() and declared.isdigit()):
        raise FeedError(400, "invalid_length", "Content-Length is not a number.")
    if len(declared) > LONGEST_LENGTH or int(declared) > settings.FEED_MAX_BODY_BYTES:
        limit = settings.FEED_MAX_BODY_BYTES
        raise FeedError(413, "payload_too_large", f"A body has at most {limit} bytes. Send several smaller ones.")
    return int(declared)


def authenticate(request: HttpRequest, now: datetime) -> Merchant:
    """The merchant whose feed key the request carries. Nothing of the body has been read yet."""
    if keys.KEY_MARK in unquote_plus(request.META.get("QUERY_STRING", "")):
        message = "A key in an address ends up in logs. Send it in the Authorization header, and replace this one."
        raise FeedError(401, "key_in_address", message, headers={"WWW-Authenticate": CHALLENGE})
    try:
        return keys.authenticate(request.META.get("HTTP_AUTHORIZATION"), now=now)
    except keys.MissingCredentialsError:
        message = "Send your feed key in the header “Authorization: Bearer wck_…”."
        raise FeedError(401, "missing_credentials", message, headers={"WWW-Authenticate": CHALLENGE}) from None
    except keys.InvalidCredentialsError as error:
        log.info("feed.invalid_credentials", key_prefix=error.prefix)
        headers = {"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"'}
        raise FeedError(401, "invalid_credentials", "This key is not valid.", headers=headers) from None


def check_media_type(request: HttpRequest) -> None:
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "identity").lower()
    if request.content_type != "application/json" or charset not in ("utf-8", "utf8") or encoding != "identity":
        raise FeedError(415, "unsupported_media_type", "Send application/json in UTF-8, not compressed.")


def read_body(request: HttpRequest, length: int) -> bytes:
    """The whole body, or FeedError when the sender went away or was too slow before its end."""
    try:
        body = request.body
    except UnreadablePostError:
        body = b""
    if len(body) != length:
        raise FeedError(400, "incomplete_body", "The body ended before its Content-Length.")
    return body
