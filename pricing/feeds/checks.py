"""What the feed checks of a request before it looks at the body's meaning, in the order in which it is checked.

Each check returns what the next needs or raises FeedError. Called by the views of the feeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote_plus

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.http.request import RawPostDataException, UnreadablePostError

from jobs import standard_webhooks
from pricing import keys, signing
from pricing.feeds import canonical, formats, glance, rate
from pricing.feeds.errors import FeedError
from pricing.models import Merchant

log = structlog.get_logger(__name__)

LONGEST_LENGTH = 12  # digits of a Content-Length that is worth converting
CHALLENGE = 'Bearer realm="winecellar feeds"'


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a request; `webhook_id` is the id under which it was signed."""

    merchant: Merchant
    webhook_id: str | None
    along: Sequence[Any] = ()  # what was read along with the key


def check_transport(request: HttpRequest) -> None:
    """A key that came over plain HTTP has been seen by others; better to say so than to redirect and take it anyway."""
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise FeedError(403, "https_required", "Send prices over https, and have your key replaced: it was readable.")


def check_method(request: HttpRequest, *, allowed: Sequence[str] = ("POST",)) -> None:
    if request.method not in allowed:
        message = f"This address takes {' or '.join(allowed)}."
        raise FeedError(405, "method_not_allowed", message, headers={"Allow": ", ".join(allowed)})


def check_length(request: HttpRequest, *, most: int | None = None) -> int:
    """The body's length as declared, in bytes; at most FEED_MAX_BODY_BYTES, or `most`."""
    declared = request.META.get("CONTENT_LENGTH", "")
    if not declared or "HTTP_TRANSFER_ENCODING" in request.META:
        raise FeedError(411, "length_required", "Send the body's Content-Length, not a chunked body.")
    if not (declared.isascii() and declared.isdigit()):
        raise FeedError(400, "invalid_length", "Content-Length is not a number.")
    limit = most or settings.FEED_MAX_BODY_BYTES
    if len(declared) > LONGEST_LENGTH or int(declared) > limit:
        raise FeedError(413, "payload_too_large", f"A body has at most {limit} bytes. Send several smaller ones.")
    return int(declared)


def authenticate(
    request: HttpRequest, merchant_id: str | None, length: int, now: datetime, along: keys.Along = keys.NOTHING
) -> Sender:
    """Who sends this, by feed key or by signature; each such request counts, and too many of them are refused.

    With a key nothing of the body is read here, and `along` is read with it; a signature is about the body.

    `merchant_id` is the one in the address, which a signed request needs: it says whose secrets to try.
    """
    if keys.KEY_MARK in unquote_plus(request.META.get("QUERY_STRING", "")):
        message = "A key in an address ends up in logs. Send it in the Authorization header, and replace this one."
        raise FeedError(401, "key_in_address", message, headers={"WWW-Authenticate": CHALLENGE})
    if "HTTP_AUTHORIZATION" not in request.META and "HTTP_WEBHOOK_SIGNATURE" in request.META and merchant_id:
        return _by_signature(request, merchant_id, length, now)
    merchant, usage, row = _by_key(request, now, along)
    if merchant_id not in (None, merchant.pk):
        raise FeedError(403, "forbidden_feed", "This key belongs to another merchant than the address.")
    _admit(merchant, usage)
    return Sender(merchant, webhook_id=None, along=row)


def _admit(merchant: Merchant, usage: rate.Usage) -> None:
    structlog.contextvars.bind_contextvars(merchant_id=merchant.pk)
    rate.check(usage)


def _by_key(request: HttpRequest, now: datetime, along: keys.Along) -> keys.Admitted:
    try:
        return keys.authenticate(request.META.get("HTTP_AUTHORIZATION"), now=now, along=along)
    except keys.MissingCredentialsError:
        message = (
            "Send your feed key in the header “Authorization: Bearer wck_…”, "
            "or sign the request and send it to the address that ends in your merchant id."
        )
        raise FeedError(401, "missing_credentials", message, headers={"WWW-Authenticate": CHALLENGE}) from None
    except keys.InvalidCredentialsError as error:
        log.info("feed.invalid_credentials", key_prefix=error.prefix)
        headers = {"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"'}
        raise FeedError(401, "invalid_credentials", "This key is not valid.", headers=headers) from None


def _by_signature(request: HttpRequest, merchant_id: str, length: int, now: datetime) -> Sender:
    signed = standard_webhooks.Signed(
        id=request.META.get("HTTP_WEBHOOK_ID", ""),
        timestamp=request.META.get("HTTP_WEBHOOK_TIMESTAMP", ""),
        signatures=request.META["HTTP_WEBHOOK_SIGNATURE"],
    )
    headers = {"WWW-Authenticate": CHALLENGE}
    try:
        merchant = signing.authenticate(
            merchant_id=merchant_id, signed=signed, body=read_body(request, length), now=now
        )
    except standard_webhooks.TimestampError:
        minutes = settings.FEED_SIGNATURE_TOLERANCE.total_seconds() / 60
        message = f"webhook-timestamp must be in seconds since 1970, within {minutes:g} minutes of our clock."
        raise FeedError(401, "stale_or_invalid_timestamp", message, headers=headers) from None
    except standard_webhooks.SignatureError:
        log.info("feed.invalid_signature", merchant_id=merchant_id)
        message = "No signature here is that of one of your secrets over “id.timestamp.body”, byte for byte."
        raise FeedError(401, "invalid_credentials", message, headers=headers) from None
    _admit(merchant, rate.count_request(merchant.pk))
    return Sender(merchant, webhook_id=canonical.check_delivery_id(signed.id, "webhook-id"))


def authenticate_shop(
    request: HttpRequest, *, kind: str, header: str, merchant_id: str, body: bytes, now: datetime
) -> Merchant:
    """The merchant in the address, when its shop system has signed the body; `header` has the signature. It counts."""
    signature = request.headers.get(header)
    headers = {"WWW-Authenticate": CHALLENGE}
    if not signature:
        raise FeedError(401, "missing_credentials", f"The header {header} is missing.", headers=headers)
    try:
        merchant = signing.authenticate_shop(
            kind=kind, merchant_id=merchant_id, signature=signature, body=body, now=now
        )
    except standard_webhooks.SignatureError:
        log.info("feed.invalid_signature", merchant_id=merchant_id)
        message = "The signature is not that of the secret we know over the body, byte for byte."
        raise FeedError(401, "invalid_credentials", message, headers=headers) from None
    _admit(merchant, rate.count_request(merchant.pk))
    return merchant


def check_media_type(
    request: HttpRequest,
    headers: Mapping[str, str],
    allowed: Sequence[str] = formats.MEDIA_TYPES,
    *,
    any_charset: bool = False,
) -> str:
    """The body's media type, one that formats.py can read, or one of those `allowed`."""
    media_type = request.content_type or ""
    charset = "utf-8" if any_charset else (request.content_params or {}).get("charset", "utf-8").lower()
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "identity").lower()
    formats.check_media_type(media_type, headers, allowed=allowed, charset=charset, encoding=encoding)
    return media_type


def read_body(request: HttpRequest, length: int) -> bytes:
    """The whole body, or FeedError when the sender went away or was too slow before its end."""
    try:
        body = request.body
    except (UnreadablePostError, RawPostDataException):  # the second: it was tried before
        body = b""
    if len(body) != length:
        raise FeedError(400, "incomplete_body", "The body ended before its Content-Length.")
    return body


def glance_at(request: HttpRequest, length: int) -> glance.Glance | None:
    """What a small body is about, read before it is known whose it is, or None: a larger one waits for the key, as does
    one that has to be asked for. What is wrong with it is said in its turn."""
    if not 0 < length <= glance.LONGEST or "HTTP_EXPECT" in request.META or "HTTP_AUTHORIZATION" not in request.META:
        return None
    try:
        body = request.body
    except UnreadablePostError:
        return None
    return glance.glance(request.META.get("HTTP_IDEMPOTENCY_KEY"), body)
