"""What the mail provider reports: mail that came back for good, complaints. Anymail reads it; here is who may say it.

Guarantee: a report without the secret changes nothing and is told nothing (401); one that cannot be read is a 400; the
same report twice changes nothing more; while the database is away it is a 503, and the provider sends it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from anymail.exceptions import AnymailWebhookValidationFailure
from anymail.signals import AnymailTrackingEvent, EventType
from anymail.webhooks.base import AnymailCoreWebhookView
from anymail.webhooks.postmark import PostmarkTrackingWebhookView
from anymail.webhooks.resend import ResendTrackingWebhookView
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt

from alerts import suppressions
from alerts.mail_models import Suppression
from jobs import standard_webhooks
from jobs.standard_webhooks import SignatureError, Signed, TimestampError

log = structlog.get_logger(__name__)
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, IndexError)
# Postmark's words for mail that came back for good. Anymail calls soft bounces bounced too.
POSTMARK_FOR_GOOD = {"HardBounce", "BadEmailAddress", "ManuallyDeactivated"}


def why(event: AnymailTrackingEvent) -> Suppression.Why | None:
    """What a report says about its address: None where the address may well take the next mail."""
    if event.event_type == EventType.COMPLAINED:
        return Suppression.Why.COMPLAINED
    if event.event_type not in {EventType.BOUNCED, EventType.REJECTED}:
        return None
    raw: Any = event.esp_event
    if "RecordType" in raw:
        return Suppression.Why.BOUNCED if raw.get("Type") in POSTMARK_FOR_GOOD else None
    # Resend says which; anymail passes it on as it came.
    kind = (raw.get("data") or {}).get("bounce", {}).get("type", "Permanent")
    return Suppression.Why.BOUNCED if kind == "Permanent" else None


class Reports(AnymailCoreWebhookView):
    """A mixin: who may speak, and what follows. Anymail's own way, signals, would be called for every kind of event."""

    def __init__(self, **options: Any) -> None:
        AnymailCoreWebhookView.__init__(
            self, **options
        )  # anymail's would warn that it was given no secret: it has ours

    @method_decorator(csrf_exempt)
    def dispatch(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        if not settings.MAIL_WEBHOOK_SECRET or self.esp_name not in settings.EMAIL_BACKEND:
            raise Http404("This provider is not ours, or we know no secret of its reports")
        return super().dispatch(request, *args, **options)

    def post(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        try:
            self.validate_request(request)
        except AnymailWebhookValidationFailure:
            log.warning("mail.report_refused", provider=self.esp_name)
            return HttpResponse("This is not signed with our secret.\n", status=401, content_type="text/plain")
        try:
            found = [(event, why(event)) for event in self.parse_events(request)]
        except UNREADABLE as error:
            log.warning("mail.report_unreadable", provider=self.esp_name, error=type(error).__name__)
            return HttpResponse("This cannot be read.\n", status=400, content_type="text/plain")
        for event, reason in found:
            if reason is not None and isinstance(event.recipient, str) and "\x00" not in event.recipient:
                suppressions.suppress(
                    address=event.recipient,
                    why=reason,
                    at=event.timestamp or timezone.now(),
                    event_id=str(event.event_id or ""),
                )
        return HttpResponse()


class ResendReports(Reports, ResendTrackingWebhookView):
    """Signed as Standard Webhooks are, with headers of another name."""

    def validate_request(self, request: HttpRequest) -> None:
        signed = Signed(*(request.headers.get(f"svix-{name}", "") for name in ("id", "timestamp", "signature")))
        try:
            standard_webhooks.check_timestamp(signed, now=timezone.now(), tolerance=settings.FEED_SIGNATURE_TOLERANCE)
            secret = standard_webhooks.read_secret(settings.MAIL_WEBHOOK_SECRET)
            standard_webhooks.check_signature(signed, request.body, secrets=[secret])
        except (TimestampError, SignatureError, ValueError) as error:
            raise AnymailWebhookValidationFailure from error


class PostmarkReports(Reports, PostmarkTrackingWebhookView):
    """Postmark signs nothing: it sends the user and the password that its webhook's address has."""

    def validate_request(self, request: HttpRequest) -> None:
        self.basic_auth = [settings.MAIL_WEBHOOK_SECRET]
        PostmarkTrackingWebhookView.validate_request(self, request)


REPORTS: dict[str, Callable[..., Any]] = {
    "resend": ResendReports.as_view(),
    "postmark": PostmarkReports.as_view(),
}
