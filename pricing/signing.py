"""Signing secrets: what merchants sign their requests with, made, checked and revoked.

Guarantee: a secret is stored sealed (HMAC needs it as it is, so a hash would not do), and shown once; an unknown
merchant and a wrong signature are refused with the same error. Called by the feed, the commands and the admin.
"""

from __future__ import annotations

import secrets
from datetime import datetime

import structlog
from django.conf import settings
from django.db import transaction

from jobs import standard_webhooks
from pricing import keys, sealing
from pricing.models import Merchant, SigningSecret

log = structlog.get_logger(__name__)

Kind = SigningSecret.Kind
NEW_SECRET_BYTES = 32
SHORTEST_SHOP_SECRET, LONGEST_SHOP_SECRET = 16, 200  # letters; the shop systems make them of 32 and more
# What the signatures for an unknown merchant are compared with; nobody knows it, nor do we.
_NOBODY = secrets.token_bytes(NEW_SECRET_BYTES)


def refuse_at_limit(*, merchant: Merchant, now: datetime, kind: str = Kind.STANDARD) -> None:
    """Raise keys.TooManyKeysError when the merchant may have no further secret of the kind. Locks it, as for keys."""
    of_kind = SigningSecret.objects.filter(kind=kind)
    keys.refuse_at_limit(merchant=merchant, now=now, among=of_kind, called="signing secrets")


@transaction.atomic
def create_secret(
    *,
    merchant: Merchant,
    note: str,
    now: datetime,
    expires_at: datetime | None = None,
    text: str | None = None,
    kind: str = Kind.STANDARD,
) -> tuple[SigningSecret, str]:
    """Keep a secret for a merchant and return it with its text, which is not shown again.

    `text` is the sender's own secret, if it made one (a shop system does); without it we make one. To rotate: create
    the second, let the merchant change over, revoke the first. Raises TooManyKeysError, and ValueError for a text that
    is no secret.
    """
    if text is None:
        text = standard_webhooks.write_secret(secrets.token_bytes(NEW_SECRET_BYTES))
    secret = read_secret(text, kind)
    refuse_at_limit(merchant=merchant, now=now, kind=kind)
    kept = SigningSecret.objects.create(
        merchant=merchant,
        kind=kind,
        prefix=keys.new_prefix(),
        sealed=sealing.seal(secret),
        note=note,
        expires_at=expires_at,
    )
    return kept, text


def read_secret(text: str, kind: str) -> bytes:
    """The bytes to sign with: shop systems sign with the text as it is. Raises ValueError, in words."""
    if kind == Kind.STANDARD:
        return standard_webhooks.read_secret(text)
    if not SHORTEST_SHOP_SECRET <= len(text) <= LONGEST_SHOP_SECRET:
        raise ValueError(f"A secret has {SHORTEST_SHOP_SECRET} to {LONGEST_SHOP_SECRET} letters, this one {len(text)}.")
    return text.encode()


def revoke_secret(*, secret: SigningSecret, now: datetime) -> bool:
    """Stop a secret from working, at once. False when it was revoked before; that time is kept."""
    return SigningSecret.objects.filter(pk=secret.pk, revoked_at__isnull=True).update(revoked_at=now) == 1


def authenticate(*, merchant_id: str, signed: standard_webhooks.Signed, body: bytes, now: datetime) -> Merchant:
    """The merchant, when the request is signed with one of its live secrets, and at about this time.

    Raises standard_webhooks.TimestampError or SignatureError.
    """
    standard_webhooks.check_timestamp(signed, now=now, tolerance=settings.FEED_SIGNATURE_TOLERANCE)
    merchant, readable = _live(merchant_id, Kind.STANDARD, now)
    standard_webhooks.check_signature(signed, body, secrets=readable)
    return _known(merchant)


def authenticate_shop(*, kind: str, merchant_id: str, signature: str, body: bytes, now: datetime) -> Merchant:
    """The merchant, when the body is signed with one of its live secrets for this shop system.

    Raises standard_webhooks.SignatureError.
    """
    merchant, readable = _live(merchant_id, kind, now)
    standard_webhooks.check_body_signature(signature, body, secrets=readable)
    return _known(merchant)


def _live(merchant_id: str, kind: str, now: datetime) -> tuple[Merchant | None, list[bytes]]:
    """What the merchant may sign with now; for an unknown one something that nobody can sign with."""
    kept = SigningSecret.objects.filter(keys.live(now), merchant_id=merchant_id, kind=kind).select_related("merchant")
    readable = [(secret.merchant, text) for secret in kept if (text := _unsealed(secret)) is not None]
    if not readable:
        return None, [_NOBODY]
    return readable[0][0], [text for _, text in readable]


def _known(merchant: Merchant | None) -> Merchant:
    if merchant is None:  # the signature fitted a secret that nobody knows; it will not happen
        raise standard_webhooks.SignatureError
    return merchant


def reseal_all() -> tuple[int, int]:
    """Seal every secret with today's SECRET_KEY. Returns how many were, and how many no key of ours can read."""
    done = unreadable = 0
    for secret in SigningSecret.objects.only("pk", "sealed"):
        try:
            sealed = sealing.reseal(secret.sealed)
        except sealing.UnreadableError:
            unreadable += 1
            continue
        done += SigningSecret.objects.filter(pk=secret.pk).update(sealed=sealed)
    return done, unreadable


def _unsealed(secret: SigningSecret) -> bytes | None:
    try:
        return sealing.unseal(secret.sealed)
    except sealing.UnreadableError:
        log.exception("feed.secret_unreadable", prefix=secret.prefix, merchant_id=secret.merchant_id)
        return None
