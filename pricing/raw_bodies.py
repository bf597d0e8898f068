"""What merchants sent, as it came: kept for a while, so that a mended adapter can read it again.

Guarantee: committed together with what was made of it, bounded in size and time, and without credentials: of the
headers only those are kept that say what the body is. Called by the feeds, the admin and the schedule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection

from jobs.database import run
from jobs.housekeeping import in_chunks
from jobs.messages import dumps
from jobs.schedule import store
from jobs.schedule.run import Run
from pricing.models import Merchant, RawBody

ATTRIBUTE = "raw_body"
ROWS_AT_ONCE = 5_000
LONGEST_HEADER = 500
_HEADERS = frozenset(
    {"content-type", "idempotency-key", "traceparent", "user-agent", "webhook-id", "webhook-timestamp"}
)
_PREFIXES = ("ce-", "x-shopify-", "x-wc-webhook-")
_SECRET_HEADER = re.compile(r"hmac|signature|secret|token|authorization")
# A key or a secret that a merchant put where it does not belong; and what is called so in JSON.
_SECRET = re.compile(r"(wck_[0-9a-f]{1,12}_|whsec_)[A-Za-z0-9+/=_-]+")
_NAMED_SECRET = re.compile(
    r'("[^"\\]{0,40}(?:secret|password|token|authorization|api_?key)[^"\\]{0,40}"\s*:\s*)"(?:[^"\\]|\\.)*"',
    re.IGNORECASE,
)
MASK = "••••"

# An id that was drawn before may be given: what is made of the body is then written with it, in one statement.
DRAW = "nextval('pricing_rawbody_id_seq')"
KEEP = """
INSERT INTO pricing_rawbody (id, merchant_id, source, headers, body, size, received_at)
VALUES ({id}, %(merchant)s, %(source)s, %(headers)s::jsonb, %(body)s, %(size)s, %(received_at)s) RETURNING id
"""
KEEP_DRAWN = KEEP.format(id="%(raw_body)s")
KEEP = KEEP.format(id=DRAW)
PURGE = """
DELETE FROM pricing_rawbody WHERE id = ANY(ARRAY(
    SELECT id FROM pricing_rawbody WHERE received_at < %s ORDER BY received_at LIMIT %s))
"""


@dataclass(frozen=True, slots=True)
class Received:
    """A request's body, the way it came in, and its headers, with lower-case names."""

    source: str
    headers: Mapping[str, str]
    body: bytes


def keep(*, merchant: Merchant, received: Received, now: datetime) -> Callable[[], dict[str, str]]:
    """Keep a body, up to FEED_RAW_BODY_BYTES of it: 1 statement. Gives, when asked, the attribute that events have."""
    cursor = run(KEEP, keeping(merchant=merchant, received=received, now=now))
    return lambda: attribute(cursor.fetchone()[0])


def keeping(*, merchant: Merchant, received: Received, now: datetime) -> dict[str, Any]:
    """The parameters of KEEP, and of KEEP_DRAWN but for the id."""
    headers = {name: value[:LONGEST_HEADER] for name, value in received.headers.items() if _is_kept(name)}
    return {
        "merchant": merchant.pk,
        "source": received.source,
        "headers": dumps(_storable(headers)),
        "body": received.body[: settings.FEED_RAW_BODY_BYTES],
        "size": len(received.body),
        "received_at": now,
    }


def attribute(id_: int) -> dict[str, str]:
    """What events say of the body that they were made from."""
    return {ATTRIBUTE: str(id_)}


def purge(run: Run) -> None:
    """A scheduled job: remove what is older than FEED_RAW_BODY_RETENTION."""
    before = store.now() - settings.FEED_RAW_BODY_RETENTION
    in_chunks(run, lambda: _purge_some(before), of="raw bodies removed")


def _purge_some(before: datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute(PURGE, [before, ROWS_AT_ONCE])
        return int(cursor.rowcount)


def readable(raw: RawBody) -> str:
    """The body as text for a person, with whatever looks like a secret masked."""
    return masked(bytes(raw.body).decode(errors="replace"))


def masked(text: str) -> str:
    text = _SECRET.sub(rf"\1{MASK}", text)
    return _NAMED_SECRET.sub(rf'\1"{MASK}"', text)


def _is_kept(name: str) -> bool:
    return (name in _HEADERS or name.startswith(_PREFIXES)) and not _SECRET_HEADER.search(name)


def storable(text: str) -> str:
    """A header's bytes are whatever was sent; Postgres stores neither NUL nor half a surrogate pair."""
    return re.sub("[\x00\ud800-\udfff]", "�", text)


def _storable(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: storable(masked(value)) for name, value in headers.items()}
