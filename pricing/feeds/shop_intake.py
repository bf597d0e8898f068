"""From a shop system's webhook to the answer: recorded once, ignored, or kept as a dead letter.

Guarantee: listings, events, raw body and stored answer, or dead letter, raw body and stored answer, are committed
together; of several copies at once one is taken. Called by the view of shop systems and by readapt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import ModuleType
from typing import Any

import structlog
from django.db import connection

from jobs import tracing
from jobs.failures import bury_unqueued
from jobs.messages import NewMessage
from pricing import listings, raw_bodies
from pricing.feeds import answers, intake, shopify, woocommerce
from pricing.feeds.answers import Answer, Unit
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import parse
from pricing.feeds.shops import Brought
from pricing.listings import Result
from pricing.models import Merchant, SigningSecret
from pricing.raw_bodies import Received

log = structlog.get_logger(__name__)

SYSTEMS: dict[str, ModuleType] = {
    SigningSecret.Kind.SHOPIFY.value: shopify,
    SigningSecret.Kind.WOOCOMMERCE.value: woocommerce,
}
CONSUMER = "feed-intake"  # the name under which the dead letters stand
UNREADABLE = "feed.webhook_unreadable"
LONGEST_EXCERPT = 20_000
LONGEST_TOPIC = 100
UNKNOWN_TOPIC = "unknown topic"  # why a webhook was ignored

IGNORE = """
INSERT INTO pricing_ignoredwebhook AS kept (merchant_id, system, count, last_topic, last_at)
VALUES (%s, %s, 1, %s, %s)
ON CONFLICT (merchant_id, system) DO UPDATE SET
    count = kept.count + 1, last_topic = excluded.last_topic, last_at = greatest(kept.last_at, excluded.last_at)
"""


def read(received: Received, *, currency: str, now: datetime) -> Brought:
    """What a webhook brings. Raises FeedError where nobody can read it, and UnknownTopicError."""
    adapter = SYSTEMS[received.source]
    adapter.check_topic(received.headers)
    brought: Brought = adapter.adapt(received.headers, parse(received.body), currency=currency, now=now)
    return brought


def take(
    brought: Brought | FeedError,
    *,
    key: str,
    merchant: Merchant,
    received: Received,
    attributes: Mapping[str, str],
    now: datetime,
) -> Answer:
    """Record what was read, or bury what could not be: once for each `key`."""

    def work(_: Sequence[int]) -> list[Answer]:
        named = {**attributes, **raw_bodies.keep(merchant=merchant, received=received, now=now)()}
        if isinstance(brought, FeedError):
            return [_bury(brought, merchant, received, named)]
        results = listings.record(
            merchant=merchant,
            asks=brought.asks,
            gone=brought.gone,
            gone_at=brought.when,
            attributes=named,
            now=now,
        )
        return [_render(results)]

    [answer] = answers.once(merchant=merchant, units=[Unit(key, received.body)], work=work)
    return answer


def ignore(*, merchant: Merchant, system: str, topic: str, now: datetime) -> Answer:
    """Count a webhook that is about no product; the last one's topic is kept, so that somebody can switch it off."""
    topic = raw_bodies.storable(topic[:LONGEST_TOPIC])
    with connection.cursor() as cursor:
        cursor.execute(IGNORE, [merchant.pk, system, topic, now])
    log.info("feed.unknown_topic", system=system, topic=topic)
    return {**_render([]), "ignored": UNKNOWN_TOPIC}


def _bury(error: FeedError, merchant: Merchant, received: Received, attributes: Mapping[str, str]) -> Answer:
    excerpt = received.body[:LONGEST_EXCERPT].decode(errors="replace")
    letter = NewMessage(
        type=UNREADABLE,
        key=merchant.pk,
        body={"merchant_id": merchant.pk, "source": received.source, "excerpt": raw_bodies.masked(excerpt)},
        attributes=tracing.with_trace(attributes),
    )
    bury_unqueued(CONSUMER, letter, error)
    log.warning("feed.unreadable", source=received.source, code=error.code, field=error.field)
    told = {"code": error.code, "message": error.message, "field": error.field}
    return {**_render([]), "unreadable": told}


def _render(results: Sequence[Result]) -> Answer:
    return {
        "accepted": len(results),
        "duplicate": False,
        "results": [_result(result) for result in results],
        "event_ids": [each.outcome.event_id for each in results if each.outcome and each.outcome.event_id],
    }


def _result(result: Result) -> dict[str, Any]:
    rendered = intake.result(result.outcome) if result.outcome else {"applied": False, "reason": str(result.kept)}
    return {"listing": result.source_id, **rendered}
