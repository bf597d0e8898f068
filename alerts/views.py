"""A wine's page, on which it is watched, and the alerts of whoever is signed in. Another person's alert is a 404."""

from datetime import timedelta
from decimal import Decimal
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from alerts import services, words
from alerts.forms import WatchForm, as_query
from alerts.meaning import known_currencies, meaning_of
from alerts.models import Alert
from alerts.selectors import SHOWN, SORTS, AlertView, alerts_on_wine, get_alert, list_alerts, log_of
from pricing.analytics import standing
from pricing.chart import draw
from pricing.charts import RANGES, Line, daily_line, range_of
from pricing.contract import PRICE_CURRENCY
from pricing.models import Wine
from pricing.selectors import WEEK, WinePrices, cheapest_offers, wine_prices
from pricing.timeline import best_price_steps, meaning_of_target, price_at, suggested_targets

UNDO = "undo-alerts"  # in the session: what was done last, so that it can be undone
LONGEST_ID = 18  # digits of a bigint that is certain to be one
TABLE_LENGTH = 100  # rows of the table beneath the chart

# --- A wine's page ---------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
def wine_page(request: HttpRequest, wine_id: str) -> HttpResponse:
    """The wine, and its watch form: POST creates an alert; ?target=, ?kind= and the rest show what one would mean."""
    if "\x00" in wine_id:
        raise BadRequest("NUL in the wine's id")
    wine = get_object_or_404(Wine, pk=wine_id)
    now = timezone.now()
    prices = wine_prices(wine.pk, now=now)
    typed = request.POST if request.method == "POST" else request.GET
    is_filled_in = request.method == "POST" or not {"target", "kind"}.isdisjoint(request.GET)
    form = WatchForm(
        typed if is_filled_in else None, offers=prices.offers, currencies=known_currencies(), today=now.date()
    )
    if request.method == "POST" and form.is_valid():
        return _watch(request, wine, prices, form)
    return _wine_response(request, wine, prices, form)


def _watch(request: HttpRequest, wine: Wine, prices: WinePrices, form: WatchForm) -> HttpResponse:
    here = f"{reverse('wine', args=[wine.pk])}?{urlencode(form.as_query())}#watch"
    if "preview" in request.POST:
        return redirect(here)
    if not request.user.is_authenticated:
        return redirect_to_login(here)  # and back to this wine, with the wish as typed
    try:
        alert = services.create_alert(user=request.user, wine=wine, wish=form.wish(), now=timezone.now())
    except services.AlreadyWatchedError as error:
        messages.info(request, f"{error} This is that alert.")
        return redirect("alert", pk=error.alert.pk)
    except services.AlertRefusedError as error:
        form.add_error(error.field, str(error))
        return _wine_response(request, wine, prices, form)
    messages.success(request, words.created(confirmed=is_confirmed(request)))
    return redirect("alert", pk=alert.pk)


def _wine_response(request: HttpRequest, wine: Wine, prices: WinePrices, form: WatchForm) -> HttpResponse:
    steps = prices.steps()
    names = prices.merchant_names
    chosen = range_of(request.GET.get("range", ""))
    line = daily_line(wine.pk, chosen, now=prices.until) if chosen.by_day else _line(prices, chosen.days)
    mine = alerts_on_wine(user_id=request.user.pk, wine_id=wine.pk, confirmed=is_confirmed(request), now=timezone.now())
    meaning = meaning_of(form.wish(), wine.pk, prices) if form.is_bound and form.is_valid() else None
    dashed = meaning.target_usd if meaning else None
    dashed = dashed or next((view.alert.target for view in mine if _is_dashed(view.alert)), None)
    context = {
        "wine": wine,
        "prices": prices,
        "week_ago_usd": price_at(steps, prices.until - WEEK),
        "form": form,
        "my_alerts": mine,
        "meaning": meaning,
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


def _is_dashed(alert: Alert) -> bool:
    """The chart is in dollars."""
    return alert.state != Alert.State.PAUSED and alert.target is not None and alert.currency == PRICE_CURRENCY


def _line(prices: WinePrices, days: int | None) -> Line:
    """A range that is within what was read anyway."""
    since = max(prices.since, prices.until - timedelta(days=days or 0))
    return Line(best_price_steps(prices.observations, since=since, until=prices.until), since, prices.until)


# --- My alerts -------------------------------------------------------------------------------------------------


@login_required
@require_safe
def alert_list(request: HttpRequest) -> HttpResponse:
    shown, sort = request.GET.get("show", "all"), request.GET.get("sort", "newest")
    after = request.GET.get("after", "")
    page = list_alerts(
        user_id=user_id(request),
        confirmed=is_confirmed(request),
        shown=shown if shown in SHOWN else "all",
        sort=sort if sort in SORTS else "newest",
        after=int(after) if after.isascii() and after.isdigit() and len(after) <= LONGEST_ID else None,
        now=timezone.now(),
    )
    context = {
        "page": page,
        "shown": shown,
        "filters": [(name, label, page.counts.get(name, 0)) for name, label in SHOWN.items()],
        "sort": sort,
        "sorts": SORTS.items(),
        "undo": request.session.get(UNDO, {}).get("words"),
        "is_later": bool(after),
        "undo_days": words.undo_days(),
    }
    return render(request, "alerts/list.html", context)


@login_required
@require_safe
def alert_page(request: HttpRequest, pk: int) -> HttpResponse:
    view = mine(request, pk)
    context = {
        "view": view,
        "alert": view.alert,
        "log": log_of(view.alert),
        "first_check": words.first_check(),
        "duplicate": f"{reverse('wine', args=[view.alert.wine_id])}?{urlencode(as_query(view.alert))}#watch",
        "further": f"{settings.ALERT_FURTHER_FALL * 100:.0f} %",
        "undo_days": words.undo_days(),
    }
    # The script asks for this part alone, to see whether it has been checked.
    return render(request, "alerts/_standing.html" if "standing" in request.GET else "alerts/detail.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def alert_edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Wait for something else. What is wrong is said beside its field, and what was typed stays."""
    view = mine(request, pk)
    if view.alert.deleted_at is not None:
        return redirect("alert", pk=pk)
    now = timezone.now()
    offers = cheapest_offers([view.alert.wine_id])
    form = WatchForm(request.POST or None, offers=offers, alert=view.alert, today=now.date())
    if request.method == "POST" and form.is_valid():
        try:
            services.change_alert(alert=view.alert, wish=form.wish(), now=now)
        except services.AlertRefusedError as error:
            form.add_error(error.field, str(error))
        except Alert.DoesNotExist as error:
            raise Http404("Deleted meanwhile") from error
        else:
            messages.success(request, words.changed(view.alert, confirmed=is_confirmed(request)))
            return redirect("alert", pk=pk)
    return render(request, "alerts/edit.html", {"view": view, "alert": view.alert, "form": form})


def user_id(request: HttpRequest) -> int:
    assert request.user.pk is not None, "behind login_required"
    return request.user.pk


def is_confirmed(request: HttpRequest) -> bool:
    """Whether the person's address is confirmed: else their alerts wait (owners.py)."""
    return bool(getattr(request.user, "address_is_confirmed", False))


def mine(request: HttpRequest, pk: int) -> AlertView:
    """The alert, if it is this person's; else a 404, as for one that never was."""
    try:
        return get_alert(user_id=user_id(request), pk=pk, confirmed=is_confirmed(request), now=timezone.now())
    except Alert.DoesNotExist as error:
        raise Http404("No such alert of this person") from error
