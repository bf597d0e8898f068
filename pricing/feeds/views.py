"""POST /feeds/v1/price-changes: the edge. Checks in the order below, makes one call, renders.

Guarantee: 202 is said only after offers, events and deliveries are committed; whatever a client sends is answered
with a 4xx that names what is wrong, never a 500. Who may call: merchants, with a feed key or a signature.

transport → method → length → size → credentials → rate → media type → UTF-8 → JSON → schema → meaning → database

A small body is glanced at before the credentials, for a round trip less; what is wrong with it is said in its turn.
"""

from __future__ import annotations

from datetime import datetime

import structlog
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from pricing.feeds import canonical, checks, formats, intake, single
from pricing.feeds.answers import Answer
from pricing.feeds.edge import answered
from pricing.raw_bodies import Received

log = structlog.get_logger(__name__)

SOURCE = "price-changes"


@csrf_exempt  # nobody's browser has a feed key, and there is no cookie to abuse
def price_changes(request: HttpRequest, merchant_id: str | None = None) -> HttpResponse:
    """Take one price observation or several, in any of the forms of formats.py."""
    return answered(request, lambda request_id: _take(request, merchant_id, request_id, now=timezone.now()))


def _take(request: HttpRequest, merchant_id: str | None, request_id: str, *, now: datetime) -> Answer:
    checks.check_transport(request)
    checks.check_method(request)
    length = checks.check_length(request)
    guess = checks.glance_at(request, length)
    sender = checks.authenticate(request, merchant_id, length, now, single.along(guess))
    ahead = single.Ahead(guess, sender.along) if guess and sender.along else None
    merchant = sender.merchant
    headers = {name.lower(): value for name, value in request.headers.items()}
    media_type = checks.check_media_type(request, headers)
    body = checks.read_body(request, length)
    deliveries = formats.read(media_type, headers, body, merchant_id=merchant.pk, now=now)
    id_of_request = _id_of_request(request, sender)
    if id_of_request is not None:
        deliveries = [formats.as_one(deliveries, id_=id_of_request)]
    attributes = {"request_id": request_id}
    received = Received(SOURCE, headers, body)
    answer = intake.take(deliveries, merchant=merchant, received=received, attributes=attributes, now=now, ahead=ahead)
    counts = {"observations": answer["accepted"], "events": len(answer["event_ids"])}
    log.info("feed.accepted", duplicate=answer["duplicate"], **counts)
    return answer


def _id_of_request(request: HttpRequest, sender: checks.Sender) -> str | None:
    """The sender's id for the request as a whole: it counts before those of what the request brings."""
    header = request.META.get("HTTP_IDEMPOTENCY_KEY")
    return sender.webhook_id if header is None else canonical.check_delivery_id(header, "Idempotency-Key")
