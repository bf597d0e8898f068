"""POST /feeds/v1/shopify/<merchant> and /feeds/v1/woocommerce/<merchant>: webhooks of shop systems. The edge.

Guarantee: as for the canonical feed; a webhook is taken once, whatever its shop system repeats, and what it asks for is
recorded or kept with its listing. Who may call: who signs with a secret of the merchant's for that system.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from types import ModuleType
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from pricing import listings
from pricing.feeds import answers, canonical, checks, formats, intake, rate, shopify, woocommerce
from pricing.feeds.answers import Answer, Unit
from pricing.feeds.edge import answered
from pricing.feeds.parse import parse
from pricing.feeds.shops import Brought
from pricing.listings import Result
from pricing.models import SigningSecret

log = structlog.get_logger(__name__)

SYSTEMS: dict[str, ModuleType] = {
    SigningSecret.Kind.SHOPIFY.value: shopify,
    SigningSecret.Kind.WOOCOMMERCE.value: woocommerce,
}


@csrf_exempt  # signed by a machine; there is no cookie to abuse
def shop_webhook(request: HttpRequest, system: str, merchant_id: str) -> HttpResponse:
    """Take what a shop system says of a product."""
    if system == SigningSecret.Kind.WOOCOMMERCE and _is_ping(request):
        return JsonResponse({}, status=200)  # tells nothing, for it is not signed
    return answered(request, lambda request_id: _take(request, system, merchant_id, request_id, now=timezone.now()))


def _is_ping(request: HttpRequest) -> bool:
    if request.method != "POST" or request.content_type != "application/x-www-form-urlencoded":
        return False
    if len(request.META.get("CONTENT_LENGTH", "")) > len("99"):
        return False
    try:
        return bool(woocommerce.PING.fullmatch(request.body))
    except UnreadablePostError:
        return False


def _take(request: HttpRequest, system: str, merchant_id: str, request_id: str, *, now: datetime) -> Answer:
    adapter = SYSTEMS[system]
    checks.check_transport(request)
    checks.check_method(request)
    body = checks.read_body(request, checks.check_length(request))
    merchant = checks.authenticate_shop(
        request, kind=system, header=adapter.SIGNATURE, merchant_id=merchant_id, body=body, now=now
    )
    structlog.contextvars.bind_contextvars(merchant_id=merchant.pk)
    rate.count_request(merchant.pk)
    headers = {name.lower(): value for name, value in request.headers.items()}
    checks.check_media_type(request, headers, allowed=(formats.JSON,))
    delivery_id = canonical.check_delivery_id(headers.get(adapter.DELIVERY), adapter.DELIVERY)
    brought: Brought = adapter.adapt(headers, parse(body), currency=merchant.currency, now=now)
    attributes = {"request_id": request_id, "merchant_delivery_id": delivery_id}
    attributes |= intake.trace(headers.get("traceparent"))

    def work(_: Sequence[int]) -> list[Answer]:
        results = listings.record(
            merchant=merchant,
            asks=brought.asks,
            gone=brought.gone,
            gone_at=brought.when,
            attributes=attributes,
            now=now,
        )
        return [_render(results)]

    unit = Unit(_key(system, delivery_id, body), body)
    [answer] = answers.once(merchant=merchant, units=[unit], work=work)
    log.info("feed.accepted", duplicate=answer["duplicate"], observations=answer["accepted"])
    return answer


def _key(system: str, delivery_id: str, body: bytes) -> str:
    """WooCommerce gives one id to all that a webhook sends within a second, so the id alone names nothing."""
    return f"{system}:" + hashlib.sha256(delivery_id.encode() + b"\n" + body).hexdigest()


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
