"""A wine's page, on which it is watched, and the alerts of whoever is signed in. Another person's alert is a 404."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import wraps
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from alerts import services, words
from alerts.forms import TargetForm, WatchForm
from alerts.models import Alert
from alerts.selectors import AlertView, alerts_on_wine, get_alert, list_alerts, log_of
from pricing.analytics import standing
from pricing.chart import draw
from pricing.charts import RANGES, Line, daily_line, range_of
from pricing.models import Merchant, Wine
from pricing.selectors import WEEK, WinePrices, wine_prices
from pricing.timeline import best_price_steps, meaning_of_target, price_at, suggested_targets
from pricing.views import page_number

TABLE_LENGTH = 100  # rows of the table beneath the chart

# --- A wine's page ---------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
def wine_page(request: HttpRequest, wine_id: str) -> HttpResponse:
    """The wine, and its watch form: POST creates an alert; ?target= shows what a target would mean."""
    if "\x00" in wine_id:
        raise BadRequest("NUL in the wine's id")
    wine = get_object_or_404(Wine, pk=wine_id)
    prices = wine_prices(wine.pk, now=timezone.now())
    if request.method == "POST":
        form = WatchForm(request.POST, offers=prices.offers)
        if form.is_valid():
            return _watch(request, wine, prices, form)
    elif "target" in request.GET:
        form = WatchForm(request.GET, offers=prices.offers)
    else:
        form = WatchForm(offers=prices.offers)
    return _wine_response(request, wine, prices, form)


def _watch(request: HttpRequest, wine: Wine, prices: WinePrices, form: WatchForm) -> HttpResponse:
    target, merchant_id = form.cleaned_data["target"], form.cleaned_data["merchant"]
    considered = {"target": target, **({"merchant": merchant_id} if merchant_id else {})}
    here = f"{reverse('wine', args=[wine.pk])}?{urlencode(considered)}#watch"
    if "preview" in request.POST:
        return redirect(here)
    if not request.user.is_authenticated:
        return redirect_to_login(here)  # and back to this wine, with the target as typed
    try:
        alert = services.create_alert(
            user=request.user,
            wine=wine,
            threshold_usd=target,
            merchant=Merchant(pk=merchant_id) if merchant_id else None,
            now=timezone.now(),
        )
    except services.AlreadyWatchedError as error:
        messages.info(request, f"{error} This is that alert.")
        return redirect("alert", pk=error.alert.pk)
    except services.AlertRefusedError as error:
        form.add_error("target", str(error))
        return _wine_response(request, wine, prices, form)
    messages.success(request, words.created(confirmed=_is_confirmed(request)))
    return redirect("alert", pk=alert.pk)


def _wine_response(request: HttpRequest, wine: Wine, prices: WinePrices, form: WatchForm) -> HttpResponse:
    steps = prices.steps()
    names = prices.merchant_names
    chosen = range_of(request.GET.get("range", ""))
    line = daily_line(wine.pk, chosen, now=prices.until) if chosen.by_day else _line(prices, chosen.days)
    mine = alerts_on_wine(user_id=request.user.pk, wine_id=wine.pk)
    considered = form.cleaned_data.get("target") if form.is_bound and form.is_valid() else None
    seller = form.cleaned_data.get("merchant") or None if considered else None
    dashed = considered or next((a.threshold_usd for a in mine if a.state != Alert.State.PAUSED), None)
    context = {
        "wine": wine,
        "prices": prices,
        "week_ago_usd": price_at(steps, prices.until - WEEK),
        "form": form,
        "my_alerts": mine,
        "meaning": considered and meaning_of_target(prices.steps(merchant_id=seller), considered),
        "seller": names.get(seller or ""),
        "suggestions": [meaning_of_target(steps, target) for target in suggested_targets(steps)],
        "overall": meaning_of_target(steps, Decimal(0)),
        "standing": standing([wine.pk], now=prices.until)[wine.pk],
        "range": chosen,
        "ranges": RANGES,
        "chart": draw(line.steps, since=line.since, until=line.until, target=dashed) if line.steps else None,
        "dashed": dashed,
        "rows": [(s, names.get(s.merchant_id, s.merchant_id)) for s in reversed(line.steps[-TABLE_LENGTH:])],
        "changes": len(line.steps),
    }
    return render(request, "wines/detail.html", context)


def _line(prices: WinePrices, days: int | None) -> Line:
    """A range that is within what was read anyway."""
    since = max(prices.since, prices.until - timedelta(days=days or 0))
    return Line(best_price_steps(prices.observations, since=since, until=prices.until), since, prices.until)


# --- My alerts -------------------------------------------------------------------------------------------------


@login_required
@require_safe
def alert_list(request: HttpRequest) -> HttpResponse:
    page, alerts = list_alerts(user_id=_user_id(request), page=page_number(request))
    return render(request, "alerts/list.html", {"page": page, "alerts": alerts, "first_check": words.first_check()})


@login_required
@require_safe
def alert_page(request: HttpRequest, pk: int) -> HttpResponse:
    return _alert_response(request, _mine(request, pk), TargetForm())


def _alert_response(request: HttpRequest, view: AlertView, form: TargetForm) -> HttpResponse:
    if not form.is_bound:
        form.initial["target"] = view.alert.threshold_usd
    context = {
        "view": view,
        "alert": view.alert,
        "form": form,
        "log": log_of(view.alert),
        "first_check": words.first_check(),
    }
    return render(request, "alerts/detail.html", context)


def _user_id(request: HttpRequest) -> int:
    assert request.user.pk is not None, "behind login_required"
    return request.user.pk


def _is_confirmed(request: HttpRequest) -> bool:
    """Whether the person's address is confirmed: else their alerts wait (owners.py)."""
    return bool(getattr(request.user, "address_is_confirmed", False))


def _mine(request: HttpRequest, pk: int) -> AlertView:
    try:
        return get_alert(user_id=_user_id(request), pk=pk)
    except Alert.DoesNotExist as error:
        raise Http404("No such alert of this person") from error


Action = Callable[[HttpRequest, AlertView], HttpResponse]


def _action(act: Action) -> Callable[..., HttpResponse]:
    """A view by POST on one's own alert. Who has to sign in first comes back to the alert's page, not to the action."""

    @require_POST
    @wraps(act)
    def view(request: HttpRequest, pk: int) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect_to_login(reverse("alert", args=[pk]))
        try:
            return act(request, _mine(request, pk))
        except Alert.DoesNotExist as error:
            raise Http404("Deleted meanwhile") from error

    return view


def _back(request: HttpRequest, view: AlertView) -> HttpResponse:
    return redirect("alerts") if request.POST.get("from") == "list" else redirect("alert", pk=view.alert.pk)


@_action
def alert_target(request: HttpRequest, view: AlertView) -> HttpResponse:
    form = TargetForm(request.POST)
    if not form.is_valid():
        return _alert_response(request, view, form)
    target = form.cleaned_data["target"]
    services.change_target(alert=view.alert, threshold_usd=target)
    paused = view.alert.state == Alert.State.PAUSED
    messages.success(request, words.target_changed(target, paused=paused, confirmed=_is_confirmed(request)))
    return _back(request, view)


@_action
def alert_pause(request: HttpRequest, view: AlertView) -> HttpResponse:
    services.pause(alert=view.alert)
    messages.success(request, words.PAUSED)
    return _back(request, view)


@_action
def alert_resume(request: HttpRequest, view: AlertView) -> HttpResponse:
    services.resume(alert=view.alert)
    messages.success(request, words.resumed(confirmed=_is_confirmed(request)))
    return _back(request, view)


@_action
def alert_delete(request: HttpRequest, view: AlertView) -> HttpResponse:
    services.delete_alert(alert=view.alert)
    messages.success(request, words.DELETED)
    return redirect("alerts")
