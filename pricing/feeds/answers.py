"""Idempotency: a merchant's retry gets the answer its first request got, and has no second effect.

Guarantee: the stored answer, and the effect it tells of, are committed in one transaction. A request that is refused
stores nothing, so its id may be used again with a corrected body. Called by the feed's view.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from pricing.feeds.errors import FeedError, unavailable
from pricing.models import FeedAnswer, Merchant

Answer = dict[str, Any]

# Waits for a twin that is at work, up to lock_timeout; whichever commits first has the row.
RESERVE = """
INSERT INTO pricing_feedanswer (merchant_id, key, body_sha256) VALUES (%s, %s, %s)
ON CONFLICT (merchant_id, key) DO NOTHING
RETURNING id
"""
TWIN_RETRY_SECONDS = 1


def once(*, merchant: Merchant, key: str | None, body: bytes, work: Callable[[], Answer]) -> Answer:
    """Do the work and store its answer under the merchant's key, or give back what is stored there.

    Without a key the work is done each time. Raises FeedError 409 when the key was used with another body; a database
    error when a twin or a wine stays locked for longer than FEED_LOCK_TIMEOUT.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            milliseconds = int(settings.FEED_LOCK_TIMEOUT.total_seconds() * 1000)
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{milliseconds}ms"])
        if key is None:
            return work()
        digest = hashlib.sha256(body).hexdigest()
        reserved = _reserve(merchant, key, digest)
        if reserved is None:
            return _stored(merchant, key, digest)
        answer = work()
        FeedAnswer.objects.filter(pk=reserved).update(answer=answer)
        return answer


def _reserve(merchant: Merchant, key: str, digest: str) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(RESERVE, [merchant.pk, key, digest])
        row = cursor.fetchone()
    return row[0] if row else None


def _stored(merchant: Merchant, key: str, digest: str) -> Answer:
    stored = FeedAnswer.objects.filter(merchant=merchant, key=key).first()
    if stored is None or stored.answer is None:  # its retention ended between the two statements
        raise unavailable(retry_after=TWIN_RETRY_SECONDS)
    if stored.body_sha256 != digest:
        raise FeedError(
            409, "id_conflict", "This id was used before, with another body. Use a new id for a new request."
        )
    return {**stored.answer, "duplicate": True}
