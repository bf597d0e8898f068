"""/.well-known/security.txt (RFC 9116): where to write about a hole. Not there until SECURITY_CONTACT says where."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

GOOD_FOR = timedelta(days=180)  # the standard recommends less than a year; each answer says it anew


@require_safe
def security_txt(request: HttpRequest) -> HttpResponse:
    contact = settings.SECURITY_CONTACT
    if not contact:
        raise Http404
    where = contact if "://" in contact else f"mailto:{contact}"
    until = (timezone.now() + GOOD_FOR).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    lines = [f"Contact: {where}", f"Expires: {until}", "Preferred-Languages: en"]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; charset=utf-8")
