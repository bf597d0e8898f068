"""Reading a kept body again with the adapters as they are now: what a mended one makes of what was misread.

Guarantee: changes nothing; the clock is that of the day on which the body came. Called by whoever decides about dead
letters.
"""

from __future__ import annotations

from dataclasses import dataclass

from pricing.feeds import formats, shop_intake
from pricing.feeds.shops import Brought
from pricing.listings import observations_of
from pricing.models import RawBody
from pricing.raw_bodies import Received
from pricing.rules import Observation


class BodyCutError(Exception):
    """The body was longer than what is kept of one."""


@dataclass(frozen=True, slots=True)
class Readapted:
    """What a body says. A shop's webhook also has its asks, of which only matched listings make observations."""

    observations: list[Observation]
    brought: Brought | None = None


def readapt(raw_body_id: int) -> Readapted:
    """Read a kept body again. Raises FeedError when it still cannot be read.

    Also BodyCutError, RawBody.DoesNotExist when it is gone, and UnknownTopicError for what would be ignored now.
    """
    raw = RawBody.objects.select_related("merchant").get(pk=raw_body_id)
    if not raw.is_whole:
        raise BodyCutError(f"Only {len(raw.body)} of its {raw.size} bytes were kept, so it cannot be read again.")
    merchant, now = raw.merchant, raw.received_at
    received = Received(raw.source, raw.headers, bytes(raw.body))
    if raw.source in shop_intake.SYSTEMS:
        brought = shop_intake.read(received, currency=merchant.currency, now=now)
        return Readapted(observations_of(merchant, brought.asks), brought)
    media_type = raw.headers.get("content-type", formats.JSON).partition(";")[0].strip().lower()
    deliveries = formats.read(media_type, raw.headers, received.body, merchant_id=merchant.pk, now=now)
    return Readapted([seen for delivery in deliveries for seen in delivery.observations])
