"""The forms in which a request may bring observations, by media type: the feed's one list of them. Pure.

Guarantee: the same observations give the same deliveries, whatever the form, and are checked by the same code. Called
by the feed's view; imports no models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pricing.feeds import canonical, cloudevents, ndjson
from pricing.feeds.canonical import Delivery
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import parse

JSON = "application/json"
NDJSON = "application/x-ndjson"
CLOUDEVENT = "application/cloudevents+json"
CLOUDEVENTS = "application/cloudevents-batch+json"
MEDIA_TYPES = (JSON, NDJSON, CLOUDEVENT, CLOUDEVENTS)


def check_media_type(
    media_type: str, headers: Mapping[str, str], *, allowed: Sequence[str], charset: str, encoding: str
) -> None:
    """Refuse what cannot be read, before the body is looked at. `headers` have lower-case names."""
    if media_type not in allowed or charset not in ("utf-8", "utf8") or encoding != "identity":
        message = f"Send {' or '.join(allowed)} in UTF-8, not compressed."
        raise FeedError(415, "unsupported_media_type", message)
    if media_type == NDJSON and _is_binary_event(headers):
        raise FeedError(415, "unsupported_media_type", f"An event in binary form brings {JSON}.")


def read(
    media_type: str, headers: Mapping[str, str], body: bytes, *, merchant_id: str, now: datetime
) -> list[Delivery]:
    """What the body brings: one delivery, or one for each event of a batch. Raises FeedError."""
    if media_type == CLOUDEVENTS:
        return cloudevents.adapt_batch(body, merchant_id=merchant_id, now=now)
    if media_type == CLOUDEVENT:
        return [cloudevents.adapt_structured(body, merchant_id=merchant_id, now=now)]
    if media_type == NDJSON:
        return [ndjson.adapt(body, merchant_id=merchant_id, now=now)]
    if _is_binary_event(headers):
        return [cloudevents.adapt_binary(headers, body, merchant_id=merchant_id, now=now)]
    return [canonical.adapt(parse(body), merchant_id=merchant_id, now=now)]


def as_one(deliveries: list[Delivery], *, id_: str) -> Delivery:
    """All that a request brings as one delivery, under the id that the request itself has."""
    return Delivery(
        observations=[seen for delivery in deliveries for seen in delivery.observations],
        where=[path for delivery in deliveries for path in delivery.where],
        delivery_id=deliveries[0].delivery_id if len(deliveries) == 1 and deliveries[0].delivery_id else id_,
        ignored_fields=sum(delivery.ignored_fields for delivery in deliveries),
        key=id_,
        attributes=deliveries[0].attributes if len(deliveries) == 1 else {},
    )


def _is_binary_event(headers: Mapping[str, str]) -> bool:
    return any(name.startswith(cloudevents.HEADER) for name in headers)
