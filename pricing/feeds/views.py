"""POST /feeds/v1/price-changes: the edge. Checks in the order below, makes one call, renders.

Guarantee: 202 is said only after offers, events and deliveries are committed; whatever a client sends is answered
with a 4xx that names what is wrong, never a 500. Who may call: merchants, with a feed key.

transport → method → length → size → credentials → rate → media type → UTF-8 → JSON → schema → meaning → database
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import structlog
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from jobs.database import is_away, sqlstate
from pricing.feeds import answers, canonical, checks, parse, rate
from pricing.feeds.errors import FeedError, unavailable
from pricing.rules import Verdict
from pricing.services import Outcome, UnknownWineError, record_observations

log = structlog.get_logger(__name__)

LOCK_NOT_AVAILABLE = "55P03"
RETRY_SOON_SECONDS, RETRY_LATER_SECONDS = 1, 5
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@csrf_exempt  # nobody's browser has a feed key, and there is no cookie to abuse
def price_changes(request: HttpRequest) -> HttpResponse:
    """Take one price observation or a list of them."""
    request_id: str = getattr(request, "request_id", "")
    with structlog.contextvars.bound_contextvars(merchant_id=None):
        try:
            answer = _take(request, request_id, now=timezone.now())
        except FeedError as error:
            log.info("feed.refused", status=error.status, code=error.code, field=error.field)
            return error.as_response(request_id)
        except DatabaseError as error:
            if not is_away(error):
                raise
            log.warning("feed.database_away", sqlstate=sqlstate(error), error=type(error).__name__)
            busy = sqlstate(error) == LOCK_NOT_AVAILABLE
            wait = RETRY_SOON_SECONDS if busy else RETRY_LATER_SECONDS
            return unavailable(retry_after=wait).as_response(request_id)
    response = JsonResponse({**answer, "request_id": request_id}, status=202)
    response["Cache-Control"] = "no-store"
    return response


def _take(request: HttpRequest, request_id: str, *, now: datetime) -> answers.Answer:
    checks.check_transport(request)
    checks.check_method(request)
    length = checks.check_length(request)
    merchant = checks.authenticate(request, now)
    structlog.contextvars.bind_contextvars(merchant_id=merchant.pk)
    rate.count_request(merchant.pk)
    checks.check_media_type(request)
    body = checks.read_body(request, length)
    delivery = canonical.adapt(parse.parse(body), merchant_id=merchant.pk, now=now)
    key = _idempotency_key(request, delivery)
    attributes = _attributes(request, request_id, delivery.delivery_id or key)

    def work() -> answers.Answer:
        outcomes = record_observations(
            merchant=merchant, observations=delivery.observations, attributes=attributes, now=now
        )
        return _render(outcomes, delivery.ignored_fields)

    try:
        answer = answers.once(merchant=merchant, key=key, body=body, work=work)
    except UnknownWineError as error:
        log.info("feed.unknown_wine", wine_id=error.wine_id)
        field = f"{delivery.where[error.index]}wine_id"
        raise FeedError(422, "unknown_wine", "We do not list this wine, or no longer.", field=field) from None
    counts = {"observations": answer["accepted"], "events": len(answer["event_ids"])}
    log.info("feed.accepted", duplicate=answer["duplicate"], **counts)
    return answer


def _idempotency_key(request: HttpRequest, delivery: canonical.Delivery) -> str | None:
    """The header, else the sender's own delivery id, else nothing."""
    header = request.META.get("HTTP_IDEMPOTENCY_KEY")
    return delivery.delivery_id if header is None else canonical.check_delivery_id(header, "Idempotency-Key")


def _attributes(request: HttpRequest, request_id: str, delivery_id: str | None) -> dict[str, str]:
    attributes = {"request_id": request_id}
    if delivery_id is not None:
        attributes["merchant_delivery_id"] = delivery_id
    traceparent = request.META.get("HTTP_TRACEPARENT", "")
    if _TRACEPARENT.fullmatch(traceparent):
        attributes["traceparent"] = traceparent
    return attributes


def _render(outcomes: list[Outcome], ignored_fields: int) -> answers.Answer:
    return {
        "accepted": len(outcomes),
        "duplicate": False,
        "results": [_result(outcome) for outcome in outcomes],
        "event_ids": [outcome.event_id for outcome in outcomes if outcome.event_id],
        "ignored_fields": ignored_fields,
    }


def _result(outcome: Outcome) -> dict[str, Any]:
    result: dict[str, Any] = {"wine_id": outcome.wine_id, "applied": outcome.verdict is Verdict.APPLIED}
    if outcome.verdict is not Verdict.APPLIED:
        result["reason"] = outcome.verdict.value
    if outcome.verdict is Verdict.HELD:
        result["held"] = "suspect"
    if outcome.event_id:
        result["event_id"] = outcome.event_id
    return result
