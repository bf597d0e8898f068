"""The notifications centre: what I was told, by which ways; marking it as read. Another person's digest is a 404."""

from __future__ import annotations

from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from alerts import centre
from alerts.digest import facts
from alerts.digest.models import Digest


def user_id(request: HttpRequest) -> int:
    assert request.user.pk is not None, "behind login_required"
    return request.user.pk


@login_required
@never_cache
@require_safe
def notifications(request: HttpRequest) -> HttpResponse:
    person = user_id(request)
    context = {
        "page": centre.told_to(user_id=person, before=request.GET.get("before", "")),
        "off": centre.switched_off(user_id=person),
        "until": timezone.now().isoformat(),
    }
    return render(request, "alerts/notifications.html", context)


@login_required
@require_POST
def notifications_read(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    centre.mark_read(user_id=user_id(request), until=min(_time(request.POST.get("until", "")) or now, now), now=now)
    messages.success(request, "All marked as read.")
    return redirect("notifications")


@login_required
@require_safe
def digest(request: HttpRequest, pk: int) -> HttpResponse:
    """What the weekly mail said."""
    row = get_object_or_404(Digest, pk=pk, user_id=user_id(request))
    return render(request, "alerts/digest.html", {"digest": row, "week": facts.read(row.facts)})


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
