"""Feed keys: making, checking and revoking the credentials merchants send prices with.

Guarantee: only the SHA-256 of a secret is stored; an unknown, wrong, revoked or expired key is refused after the
same work and with the same error. Called by the feed's view, the commands and the admin.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import Q, QuerySet

from jobs.database import run
from pricing.feeds import rate
from pricing.models import FeedKey, Merchant, SigningSecret

# wck_<prefix>_<secret>: the prefix finds the row and may be shown, the secret is 256 random bits in base64url.
_PREFIX_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_PREFIX_LENGTH = 8
_HEADER = re.compile(r"(?i:bearer) +wck_(?P<prefix>[0-9a-z]{8})_(?P<secret>[A-Za-z0-9_-]{43})")
KEY_MARK = "wck_"
# What an unknown prefix is compared with; nobody knows its secret, nor do we.
_NOBODY = hashlib.sha256(secrets.token_bytes(32)).hexdigest()


# Asked for each request: who has the key, and, if it lets them in, the count of their requests. That the server
# compares digests too tells nobody anything: whoever learnt a digest by it would still lack what it is the digest of.
_MERCHANT = [field.attname for field in Merchant._meta.concrete_fields]
_ALONG = "LEFT JOIN LATERAL {function} AS along ON usage.requests IS NOT NULL"


def admitting(columns: Sequence[str] = (), function: str = "") -> str:
    """The statement; with the `columns` of a function's one row, which is called for who is let in, `found.id`."""
    along = _ALONG.format(function=function) if function else ""
    return f"""
WITH found AS MATERIALIZED (
    SELECT key.secret_sha256, key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > %(now)s) AS alive,
           {", ".join(f"merchant.{name}" for name in _MERCHANT)}
    FROM pricing_feedkey AS key JOIN pricing_merchant AS merchant ON merchant.id = key.merchant_id
    WHERE key.prefix = %(prefix)s
),
usage AS ({rate.counting("SELECT id FROM found WHERE alive AND secret_sha256 = %(digest)s")})
SELECT found.secret_sha256, found.alive, usage.requests, usage.seconds_left,
       {", ".join([*(f"found.{name}" for name in _MERCHANT), *(f"along.{name}" for name in columns)])}
FROM found LEFT JOIN usage ON true {along}
"""  # noqa: S608 (the names are those of our own columns)


class Along(NamedTuple):
    """What is read along with a key that lets its merchant in, which saves a round trip: a statement that `admitting`
    has made, and its function's parameters."""

    statement: str
    parameters: Mapping[str, Any]


NOTHING = Along(admitting(), {})


class Admitted(NamedTuple):
    """Whose key it is, how often they have called in this minute, with this time, and what was read along."""

    merchant: Merchant
    usage: rate.Usage
    along: Sequence[Any]


class MissingCredentialsError(Exception):
    """The request names no key at all."""


class InvalidCredentialsError(Exception):
    """The request's key lets nobody in. `prefix` is for our log; the sender is not told what was wrong."""

    def __init__(self, prefix: str = "") -> None:
        super().__init__("invalid credentials")
        self.prefix = prefix


class TooManyKeysError(Exception):
    """The merchant has all the live keys it may have; the message says what to do."""


def live(now: datetime) -> Q:
    """The keys, or signing secrets, that let their merchant in at `now`."""
    return Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=now))


def refuse_at_limit(
    *, merchant: Merchant, now: datetime, among: QuerySet[Any] | None = None, called: str = "keys"
) -> None:
    """Raise TooManyKeysError when the merchant may have no further key (or what else is counted `among`). Locks the
    merchant until the transaction ends, so that two people creating keys at once cannot both pass."""
    Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)
    counted = FeedKey.objects.all() if among is None else among
    count = counted.filter(live(now), merchant=merchant).count()
    if count >= settings.FEED_MAX_LIVE_KEYS:
        raise TooManyKeysError(
            f"{merchant.name} has {count} live {called}, which is the most it may have: "
            "revoke the one it no longer uses, then create another."
        )


@transaction.atomic
def create_key(
    *, merchant: Merchant, note: str, now: datetime, expires_at: datetime | None = None
) -> tuple[FeedKey, str]:
    """Make a key and return it with its full text, which exists nowhere afterwards.

    To rotate: create the second key, let the merchant change over, revoke the first. Raises TooManyKeysError.
    """
    refuse_at_limit(merchant=merchant, now=now)
    prefix = new_prefix()
    secret = secrets.token_urlsafe(32)
    key = FeedKey.objects.create(
        merchant=merchant, prefix=prefix, secret_sha256=_digest(secret), note=note, expires_at=expires_at
    )
    return key, f"{KEY_MARK}{prefix}_{secret}"


def revoke_key(*, key: FeedKey, now: datetime) -> bool:
    """Stop a key from working, at once. False when it was revoked before; that time is kept."""
    return FeedKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=now) == 1


def new_prefix() -> str:
    """A name for a credential, which tells nothing of its secret."""
    return "".join(secrets.choice(_PREFIX_LETTERS) for _ in range(_PREFIX_LENGTH))


def state(key: FeedKey | SigningSecret, *, now: datetime) -> str:
    """Whether a key or a signing secret works, in words."""
    if key.revoked_at:
        return f"revoked {key.revoked_at:%Y-%m-%d %H:%M} UTC"
    if key.expires_at:
        return f"{'expired' if key.expires_at <= now else 'live until'} {key.expires_at:%Y-%m-%d %H:%M} UTC"
    return "live"


def authenticate(header: str | None, *, now: datetime, along: Along = NOTHING) -> Admitted:
    """The merchant that an Authorization header's key belongs to, and its requests in this minute, with this one.

    Raises MissingCredentialsError without a header, InvalidCredentialsError for anything that lets nobody in.
    """
    if not header:
        raise MissingCredentialsError
    found = _HEADER.fullmatch(header)
    if found is None:
        raise InvalidCredentialsError
    digest = _digest(found["secret"])
    parameters = {"now": now, "prefix": found["prefix"], "digest": digest, **along.parameters}
    row = run(along.statement, parameters).fetchone()
    secret_sha256, alive, requests, seconds_left, *rest = row or (_NOBODY, False, 0, 0)
    right = hmac.compare_digest(digest, secret_sha256)
    if not (right and alive):
        raise InvalidCredentialsError(found["prefix"])
    merchant = Merchant.from_db(DEFAULT_DB_ALIAS, _MERCHANT, rest[: len(_MERCHANT)])
    return Admitted(merchant, rate.Usage(requests, seconds_left), rest[len(_MERCHANT) :])


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
