"""“My address works again”: one button, on the account's page and beside the alerts whose mail waits for it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from alerts import suppressions, words


@login_required
@require_POST
def works(request: HttpRequest) -> HttpResponse:
    assert request.user.is_authenticated, "behind login_required"
    try:
        if suppressions.lift(person=request.user, now=timezone.now()):
            messages.success(request, words.ADDRESS_WORKS.format(email=request.user.email))
    except suppressions.TooSoonError:
        messages.error(request, words.ADDRESS_WORKS_TOO_SOON)
    return redirect("account")
