"""What people do to their alerts by POST, one or several at a time; each can be undone from the list afterwards.

Another person's alert is a 404, or passed over among several. Parses, makes one call, says what became of it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from alerts import services, words
from alerts.models import Alert
from alerts.selectors import PAGE_SIZE, AlertView, alerts_named
from alerts.services import Act
from alerts.views import LONGEST_ID, UNDO, is_confirmed, mine, user_id

DAY, WEEK = timedelta(days=1), timedelta(days=7)


def _snooze_for(period: timedelta) -> Callable[[datetime], Act]:
    return lambda now: services.snoozing(now + period)


# By the word in the form: what it is called, what it does, and what undoes it (nothing: bringing back).
BULK: dict[str, tuple[str, Callable[[datetime], Act], Callable[[datetime], Act] | None]] = {
    "pause": ("Pause", lambda _: services.act_on_pause, lambda _: services.act_on_resume),
    "resume": ("Resume", lambda _: services.act_on_resume, lambda _: services.act_on_pause),
    "snooze-day": ("Snooze for a day", _snooze_for(DAY), lambda _: services.act_on_resume),
    "snooze-week": ("Snooze for a week", _snooze_for(WEEK), lambda _: services.act_on_resume),
    "delete": ("Delete", lambda _: services.act_on_delete, None),
}

Action = Callable[[HttpRequest, AlertView], HttpResponse]


def _action(act: Action) -> Callable[..., HttpResponse]:
    """A view by POST on one's own alert. Who has to sign in first comes back to the alert's page, not to the action."""

    @require_POST
    @wraps(act)
    def view(request: HttpRequest, pk: int) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect_to_login(reverse("alert", args=[pk]))
        try:
            return act(request, mine(request, pk))
        except Alert.DoesNotExist as error:
            raise Http404("Deleted meanwhile") from error

    return view


def _back(request: HttpRequest, view: AlertView) -> HttpResponse:
    return redirect("alerts") if request.POST.get("from") == "list" else redirect("alert", pk=view.alert.pk)


@_action
def alert_pause(request: HttpRequest, view: AlertView) -> HttpResponse:
    services.pause(alert=view.alert, now=timezone.now())
    messages.success(request, words.PAUSED)
    return _back(request, view)


@_action
def alert_resume(request: HttpRequest, view: AlertView) -> HttpResponse:
    services.resume(alert=view.alert, now=timezone.now())
    messages.success(request, words.resumed(confirmed=is_confirmed(request)))
    return _back(request, view)


@_action
def alert_snooze(request: HttpRequest, view: AlertView) -> HttpResponse:
    """For a day, a week, or until the price has risen."""
    now = timezone.now()
    try:
        if request.POST.get("for") == "rise":
            services.snooze_until_rise(alert=view.alert, now=now)
        else:
            until = now + (WEEK if request.POST.get("for") == "week" else DAY)
            services.snooze(alert=view.alert, until=until, now=now)
    except services.AlertRefusedError as error:
        messages.error(request, str(error))
        return _back(request, view)
    if view.alert.state == Alert.State.PAUSED:
        messages.info(request, "It is paused, so it sends no mail anyway.")
    else:
        messages.success(request, words.snoozed(view.alert, now))
    return _back(request, view)


@_action
def alert_delete(request: HttpRequest, view: AlertView) -> HttpResponse:
    services.delete_alert(alert=view.alert, now=timezone.now())
    request.session[UNDO] = {"act": "delete", "ids": [view.alert.pk], "words": words.deleted()}
    return redirect("alerts")


@_action
def alert_restore(request: HttpRequest, view: AlertView) -> HttpResponse:
    try:
        services.restore(user_id=user_id(request), ids=[view.alert.pk], now=timezone.now())
    except services.AlertRefusedError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, words.RESTORED)
    return redirect("alert", pk=view.alert.pk)


@require_POST
def alerts_bulk(request: HttpRequest) -> HttpResponse:
    """The same to all that were chosen: first it is asked, then done."""
    if not request.user.is_authenticated:
        return redirect_to_login(reverse("alerts"))
    word, ids, now = request.POST.get("act", ""), _ids(request), timezone.now()
    chosen = alerts_named(user_id=user_id(request), ids=ids, confirmed=is_confirmed(request), now=now) if ids else []
    if word not in BULK or not chosen:
        messages.error(
            request, "Choose at least one alert, and what is to be done." if word else "Choose what is to be done."
        )
        return redirect("alerts")
    label, act, _ = BULK[word]
    if "confirmed" not in request.POST:
        return render(request, "alerts/confirm.html", {"views": chosen, "act": word, "label": label})
    done = services.act_on(user_id=user_id(request), ids=ids, act=act(now), now=now)
    said = words.deleted(len(done)) if word == "delete" else f"Done for {words.alerts(len(done))}: {label.lower()}."
    request.session[UNDO] = {"act": word, "ids": done, "words": said}
    return redirect("alerts")


@require_POST
def alerts_undo(request: HttpRequest) -> HttpResponse:
    """Undo what was done last. Once: a second click finds nothing to undo."""
    if not request.user.is_authenticated:
        return redirect_to_login(reverse("alerts"))
    last, now = request.session.pop(UNDO, None), timezone.now()
    if not last:
        messages.info(request, "There is nothing to undo.")
        return redirect("alerts")
    undo = BULK[last["act"]][2]
    if undo is not None:
        services.act_on(user_id=user_id(request), ids=last["ids"], act=undo(now), now=now)
        messages.success(request, "Undone.")
        return redirect("alerts")
    try:
        services.restore(user_id=user_id(request), ids=last["ids"], now=now)
    except services.AlertRefusedError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, words.RESTORED)
    return redirect("alerts")


def _ids(request: HttpRequest) -> list[int]:
    """The alerts that were ticked; no page shows more than PAGE_SIZE."""
    typed = request.POST.getlist("alert")[:PAGE_SIZE]
    return [int(text) for text in typed if text.isascii() and text.isdigit() and len(text) <= LONGEST_ID]
