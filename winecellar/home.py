"""The first page: what this is, for a stranger; for others, what is new with their wines and their cellar.

A root module, since it reads from alerts and cellars alike. Changes nothing. Six queries beside the session's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from alerts.models import Alert, Decision
from pricing.analytics import Fall, biggest_falls
from pricing.models import Wine
from winecellar.cellars import selectors as cellars
from winecellar.cellars.models import Bottle, Cellar, Valuation

NEWS, FALLS, MET = 5, 5, 5  # shown of each kind; the rest is on its own page
MOST_WINES = 2_000  # of one person, looked at for falls: more would take longer than a page may
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class FallenWine:
    wine: Wine
    fall: Fall


@dataclass(frozen=True, slots=True)
class Home:
    """`nights`: the last two valuations of the cellar, the latest first. `watched`: how many alerts there are."""

    watched: int
    met: list[Alert]
    news: list[Decision]
    falls: list[FallenWine]
    cellar: Cellar | None
    nights: list[Valuation]

    @property
    def worth(self) -> Valuation | None:
        return self.nights[0] if self.nights else None

    @property
    def change(self) -> Any:
        """Since the night before; None where that was another currency, or there was none."""
        if len(self.nights) < 2 or self.nights[0].currency != self.nights[1].currency:
            return None
        return self.nights[0].value - self.nights[1].value


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return render(request, "home.html", {"home": None})
    assert request.user.pk is not None
    return render(request, "home.html", {"home": read_home(request.user.pk, now=timezone.now())})


def read_home(user_id: int, *, now: datetime) -> Home:
    mine = Alert.live.filter(user_id=user_id)
    states = dict(mine.values_list("pk", "state"))
    met = mine.filter(state=Alert.State.FIRED).select_related("wine", "merchant")
    news = Decision.objects.filter(alert__user_id=user_id, decided_at__gte=now - DAY, price__isnull=False)
    cellar = cellars.find_cellar(user_id)
    return Home(
        watched=len(states),
        met=list(met.order_by("-last_notified_at", "-pk")[:MET]),
        news=list(news.select_related("alert__wine").order_by("-decided_at", "-pk")[:NEWS]),
        falls=_falls(user_id, now=now),
        cellar=cellar,
        nights=cellars.last_nights(cellar) if cellar else [],
    )


def _falls(user_id: int, *, now: datetime) -> list[FallenWine]:
    """The biggest falls of a week among the wines that somebody watches or holds."""
    watched = Alert.live.filter(user_id=user_id).order_by().values_list("wine_id")
    held = Bottle.objects.filter(cellar__owner_id=user_id, quantity__gt=0, wine__isnull=False).order_by()
    wine_ids = [wine_id for (wine_id,) in watched.union(held.values_list("wine_id"))[:MOST_WINES]]
    falls = biggest_falls(wine_ids, now=now, most=FALLS) if wine_ids else []
    wines = Wine.objects.in_bulk([fall.wine_id for fall in falls]) if falls else {}
    return [FallenWine(wines[fall.wine_id], fall) for fall in falls if fall.wine_id in wines]
