"""Giving a card: on the payment provider's own page, so that its number never comes here.

The provider is asked within the request, with no transaction open and for PAYMENT_TIMEOUT at most: the person waits.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from jobs.errors import PermanentError, TransientError
from winecellar.purchases import payments, services
from winecellar.purchases.models import Card
from winecellar.purchases.payments import NotSetUpError

BACK = "card-back-to"  # in the session: the page that the card is wanted for
AWAY = "The payment provider does not answer now. Nothing was changed. Try again in a minute."
FAILURES = (TransientError, PermanentError, NotSetUpError)


@login_required
@require_POST
def card_begin(request: HttpRequest) -> HttpResponse:
    """Have the provider make a page, and show the link to it. (A form of ours must not lead to another's site: CSP.)"""
    assert request.user.pk is not None, "behind login_required"
    back = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        request.session[BACK] = back
    known = Card.objects.filter(user_id=request.user.pk).first()
    try:
        customer_id, address = payments.provider().begin_card(
            reference=f"person-{request.user.pk}",
            customer_id=known.customer_id if known else "",
            back_to=settings.SITE_URL + reverse("card-back"),
        )
    except FAILURES:
        messages.error(request, AWAY)
        return redirect(_wanted_page(request))
    services.keep_customer(user=request.user, customer_id=customer_id, now=timezone.now())
    return render(request, "purchases/card.html", {"address": address, "host": urlsplit(address).hostname})


@login_required
@require_safe
def card_back(request: HttpRequest) -> HttpResponse:
    """Whoever comes back from the provider's page, with a card or without."""
    session_id = request.GET.get("session_id", "")
    if not session_id.replace("_", "").isalnum():
        messages.info(request, "No card was added.")
        return redirect(_wanted_page(request))
    try:
        card = payments.provider().finish_card(session_id)
    except FAILURES:
        messages.error(request, AWAY)
        return redirect(_wanted_page(request))
    if card is None or not services.keep_card(user=request.user, card=card, now=timezone.now()):
        messages.info(request, "No card was added.")
    else:
        messages.success(request, f"Your card is {card.label}.")
    return redirect(request.session.pop(BACK, "") or "purchases")


def _wanted_page(request: HttpRequest) -> str:
    return str(request.session.get(BACK, "") or reverse("purchases"))
