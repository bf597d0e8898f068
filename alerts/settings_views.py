"""How somebody is told: mail, the weekly mail, channels, their Atom feed. Another person's channel is a 404.

What is shown once is in the answer to the POST that made it, and nowhere else: no session, no cookie, no second look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from alerts import wishes
from alerts.centre_views import user_id
from alerts.channels import services, vendors
from alerts.channels.models import AtomFeed, Channel, ChannelDelivery
from alerts.forms import ChannelForm
from alerts.mail_models import MailWish
from alerts.unsubscribe import Scope, Wish


@login_required
@never_cache
@require_safe
def notification_settings(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _page(request: HttpRequest, *, status: int = 200, **shown: Any) -> HttpResponse:
    """`form` with its errors, or what is shown once: `secret` of a `channel`, `feed_url`."""
    person = user_id(request)
    channels = list(Channel.objects.filter(user_id=person))
    tests = ChannelDelivery.objects.filter(channel__in=channels, notification=None).order_by("pk")
    last_test = {test.channel_id: test for test in tests}
    context = {
        "wish": MailWish.objects.filter(pk=person).first(),
        "channels": [(channel, last_test.get(channel.pk)) for channel in channels],
        "room": len(channels) < settings.CHANNELS_PER_USER,
        "feed": AtomFeed.objects.filter(user_id=person).first(),
        "services": vendors.names(),
        "form": ChannelForm(services=vendors.names()),
        **shown,
    }
    return render(request, "alerts/settings.html", context, status=status)


@login_required
@require_POST
def mail_wishes(request: HttpRequest) -> HttpResponse:
    """A box that is not ticked is a wish to hear no more."""
    for scope in (Scope.ALERTS, Scope.DIGEST):
        wish = Wish(scope, user_id(request))
        if scope.value in request.POST:
            wishes.undo(wish, now=timezone.now())
        else:
            wishes.stop(wish, now=timezone.now())
    messages.success(request, "Saved.")
    return redirect("notification-settings")


@sensitive_post_parameters("address")
@login_required
@never_cache
@require_POST
def add_channel(request: HttpRequest) -> HttpResponse:
    form = ChannelForm(request.POST, services=vendors.names())
    if not form.is_valid():
        return _page(request, form=form)
    address, now = form.cleaned_data["address"], timezone.now()
    try:
        if address.lower().startswith(("http://", "https://")):
            channel, secret = services.add_webhook(user_id=user_id(request), url=address, now=now)
            return _page(request, channel=channel, secret=secret)
        channel = services.add_service(user_id=user_id(request), address=address, now=now)
    except services.ChannelRefusedError as error:
        form.add_error("address", str(error))
        return _page(request, form=form)
    messages.success(request, f"{channel} is added. Send it a test.")
    return redirect("notification-settings")


Act = Callable[[HttpRequest, Channel], HttpResponse | None]


def _test(request: HttpRequest, channel: Channel) -> None:
    sent = services.send_test(channel=channel, now=timezone.now())
    says = "A test is on its way." if sent else "No test was sent: it is off, or another test is on its way."
    messages.info(request, f"{says} Load this page again to see what came of it." if sent else says)


def _new_secret(request: HttpRequest, channel: Channel) -> HttpResponse | None:
    try:
        secret = services.rotate_secret(channel=channel, now=timezone.now())
    except services.ChannelRefusedError as error:
        messages.error(request, str(error))
        return None
    return _page(request, channel=channel, secret=secret)


def _off(request: HttpRequest, channel: Channel) -> None:
    services.switch_off(channel=channel, now=timezone.now())
    messages.success(request, f"{channel} is off.")


def _on(request: HttpRequest, channel: Channel) -> None:
    services.switch_on(channel=channel)
    messages.success(request, f"{channel} is on, for what comes from now on.")


def _remove(request: HttpRequest, channel: Channel) -> None:
    services.remove(channel=channel)
    messages.success(request, f"{channel} is removed, with its secret.")


ACTIONS: dict[str, Act] = {"test": _test, "secret": _new_secret, "off": _off, "on": _on, "remove": _remove}


@login_required
@never_cache
@require_POST
def channel_action(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    act = ACTIONS.get(action)
    if act is None:
        raise Http404("No such action")
    channel = get_object_or_404(Channel, pk=pk, user_id=user_id(request))
    try:
        return act(request, channel) or redirect("notification-settings")
    except Channel.DoesNotExist as error:
        raise Http404("Removed meanwhile") from error


@login_required
@never_cache
@require_POST
def feed_open(request: HttpRequest) -> HttpResponse:
    token = services.open_feed(user_id=user_id(request), now=timezone.now())
    return _page(request, feed_url=settings.SITE_URL + reverse("atom-feed", args=[token]))


@login_required
@require_POST
def feed_close(request: HttpRequest) -> HttpResponse:
    services.close_feed(user_id=user_id(request))
    messages.success(request, "Your feed's address works no longer.")
    return redirect("notification-settings")
