"""POST /feeds/v1/shopify/<merchant> and /feeds/v1/woocommerce/<merchant>: webhooks of shop systems. The edge.

Guarantee: as for the canonical feed; a webhook is taken once, whatever its shop system repeats, and what it asks for is
recorded or kept with its listing. What is signed and cannot be read is answered with 2xx all the same, since the
shop system would only send it again and then switch the webhook off; it becomes a dead letter with its raw body. Who
may call: who signs with a secret of the merchant's for that system.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from pricing.feeds import canonical, checks, formats, shop_intake, woocommerce
from pricing.feeds.answers import Answer
from pricing.feeds.edge import answered
from pricing.feeds.errors import FeedError
from pricing.feeds.shops import Brought, UnknownTopicError
from pricing.models import SigningSecret
from pricing.raw_bodies import Received

log = structlog.get_logger(__name__)


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
    adapter = shop_intake.SYSTEMS[system]
    checks.check_transport(request)
    checks.check_method(request)
    body = checks.read_body(request, checks.check_length(request))
    merchant = checks.authenticate_shop(
        request, kind=system, header=adapter.SIGNATURE, merchant_id=merchant_id, body=body, now=now
    )
    headers = {name.lower(): value for name, value in request.headers.items()}
    delivery_id = headers.get(adapter.DELIVERY, "")
    received = Received(system, headers, body)
    brought: Brought | FeedError
    attributes = {"request_id": request_id}
    try:
        adapter.check_topic(headers)
        checks.check_media_type(request, headers, allowed=(formats.JSON,))
        attributes["merchant_delivery_id"] = canonical.check_delivery_id(delivery_id, adapter.DELIVERY)
        brought = shop_intake.read(received, currency=merchant.currency, now=now)
    except UnknownTopicError:
        return shop_intake.ignore(merchant=merchant, system=system, topic=headers.get(adapter.TOPIC, ""), now=now)
    except FeedError as error:
        brought = error
    answer = shop_intake.take(
        brought,
        key=_key(system, delivery_id, body),
        merchant=merchant,
        received=received,
        attributes=attributes,
        now=now,
    )
    log.info("feed.accepted", duplicate=answer["duplicate"], observations=answer["accepted"])
    return answer


def _key(system: str, delivery_id: str, body: bytes) -> str:
    """WooCommerce gives one id to all that a webhook sends within a second, so the id alone names nothing."""
    return f"{system}:" + hashlib.sha256(delivery_id.encode() + b"\n" + body).hexdigest()
