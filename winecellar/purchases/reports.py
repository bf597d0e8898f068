"""What the payment provider reports: that something became of a payment. A hint to look, never the fact itself.

Guarantee: a report without the secret changes nothing and is told nothing (401); one that cannot be read is a 400; the
same report again changes nothing; order does not matter, since each has the payment looked up as it is. The report and
what follows from it are one transaction; while the database is away it is a 503, and the provider sends it again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from jobs.outbox import publish
from winecellar.purchases import books
from winecellar.purchases.events import CHECK_PAYMENT
from winecellar.purchases.models import ProviderReport, Purchase

log = structlog.get_logger(__name__)
LARGEST = 200_000  # a report is some kilobytes
_ID = re.compile(r"[A-Za-z0-9_]{1,100}")
_KIND = re.compile(r"[a-z0-9_.]{1,100}")


@dataclass(frozen=True)
class Report:
    """`reference` and `intent_id` say which purchase; "" where the report does not."""

    event_id: str
    kind: str
    reference: str
    intent_id: str


@csrf_exempt
@require_POST
def payment_reports(request: HttpRequest) -> HttpResponse:
    if not settings.PAYMENTS_WEBHOOK_SECRET:
        raise Http404("We know no secret of the reports")
    if int(request.headers.get("Content-Length") or 0) > LARGEST:
        return _told("This is too long to be a report.", 413)
    if not _is_signed(request.body, request.headers.get("Stripe-Signature", "")):
        log.warning("payment.report_refused")
        return _told("This is not signed with our secret.", 401)
    report = read(request.body)
    if report is None:
        return _told("This cannot be read.", 400)
    take(report, now=timezone.now())
    return HttpResponse()


def _is_signed(body: bytes, signature: str) -> bool:
    import stripe  # noqa: PLC0415  (a second to load, and no page needs it)

    if not signature.isascii():  # which its comparison would not take
        return False
    tolerance = int(settings.PAYMENT_REPORT_TOLERANCE.total_seconds())
    try:
        stripe.WebhookSignature.verify_header(body, signature, settings.PAYMENTS_WEBHOOK_SECRET, tolerance)
    except (stripe.SignatureVerificationError, UnicodeDecodeError):
        return False
    return True


def read(body: bytes) -> Report | None:
    """What a report says, or None for what is none."""
    try:
        document: Any = json.loads(body)
        thing = document["data"]["object"]
        event_id, kind = document["id"], document["type"]
        is_intent = thing.get("object") == "payment_intent"
        intent_id = thing.get("id") if is_intent else thing.get("payment_intent")
        reference = (thing.get("metadata") or {}).get("purchase")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not (isinstance(event_id, str) and _ID.fullmatch(event_id) and isinstance(kind, str) and _KIND.fullmatch(kind)):
        return None
    return Report(event_id, kind, _an_id(reference), _an_id(intent_id))


def _an_id(value: Any) -> str:
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def take(report: Report, *, now: datetime) -> bool:
    """Have the payment looked up; whether the report was new."""
    names = Q(reference=report.reference) if report.reference else Q(intent_id=report.intent_id)
    with transaction.atomic():
        _, new = ProviderReport.objects.get_or_create(
            event_id=report.event_id, defaults={"kind": report.kind, "received_at": now}
        )
        known = report.reference or report.intent_id
        purchase = Purchase.objects.filter(names).values_list("pk", flat=True).first() if new and known else None
        if purchase is not None:
            publish([books.command(purchase, CHECK_PAYMENT)])
    log.info("payment.reported", kind=report.kind, purchase=purchase, new=new)
    return new


def _told(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain")
