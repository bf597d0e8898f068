"""My cellar: what it is worth and why, what is in it, and how it is reckoned."""

from datetime import timedelta

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from pricing.sizes import size_words
from pricing.views import page_number
from winecellar.cellars import selectors, services, words
from winecellar.cellars.forms import CellarForm
from winecellar.cellars.holdings import SORTS, Choice, Held, drink_now, group, readiness
from winecellar.cellars.mine import asked, own_cellar
from winecellar.cellars.models import Cellar, Valuation
from winecellar.cellars.rates import rates_on
from winecellar.cellars.rules import Source

PAGE_SIZE = 50
LIST_LENGTH = 8  # of the short lists on the page
GROUPS = 8
PERIODS = {"90": timedelta(days=90), "365": timedelta(days=365)}
FILTERS = ("region", "vintage", "size", "location")


@own_cellar
@require_safe
def cellar_page(request: HttpRequest, cellar: Cellar) -> HttpResponse:
    nights = selectors.last_nights(cellar)
    night = nights[0] if nights else None
    held = selectors.holdings(cellar, night)
    year = timezone.now().year
    choice = Choice(
        search=asked(request, "q"),
        **{name: asked(request, name) for name in FILTERS},
        show=asked(request, "show"),
        sort=asked(request, "sort") or "name",
    )
    chosen = choice.of(held, year)
    paginator = Paginator(chosen, PAGE_SIZE)
    page = paginator.page(min(max(page_number(request), 1), paginator.num_pages))
    ready = drink_now(held, year)
    context = {
        "cellar": cellar,
        "night": night,
        "held": held,
        "bottle_count": sum(row.quantity for row in held),
        "new": sum(row.quantity for row in held if row.source is None),
        "choice": choice,
        "chosen": sum(row.quantity for row in chosen),
        "page": page,
        "rows": [(row, _value_words(row, night), _ready_words(row, year)) for row in page],
        "options": {name: _options(held, name) for name in FILTERS},
        "sorts": SORTS,
        "ready": [(row, words.READY[readiness(row, year)]) for row in ready[:LIST_LENGTH]],
        "ready_count": sum(row.quantity for row in ready),
        "unvalued": [row for row in held if row.source is Source.NONE][:LIST_LENGTH],
        "groups": {
            "Region": group(held, lambda row: row.wide_region or "not said", most=GROUPS),
            "Vintage": group(held, lambda row: row.vintage_words or "not said", most=GROUPS),
            "Size": group(held, lambda row: size_words(row.size_ml), most=GROUPS),
        },
        **_worth(cellar, nights, asked(request, "days")),
    }
    return render(request, "cellar/cellar.html", context)


def _worth(cellar: Cellar, nights: list[Valuation], days: str) -> dict[str, object]:
    if not nights:
        return {}
    period = PERIODS.get(days, PERIODS["90"])
    chart, drawn = selectors.worth_over_time(cellar, nights[0], period)
    since = selectors.change_since(*nights) if len(nights) == 2 else None
    causes = []
    if since and since.change:
        for cause, said, amount in words.causes(since.change):
            causes.append((said, amount, selectors.movers(since.change, cause, 3)))
    return {"chart": chart, "drawn": drawn[:100], "days": period.days, "since": since, "causes": causes}


def _value_words(row: Held, night: Valuation | None) -> str:
    return words.source(row.source, row.seen_on, night.day if night else timezone.now().date())


def _ready_words(row: Held, year: int) -> str:
    return words.READY[readiness(row, year)] if row.drink_from or row.drink_until else ""


def _options(held: list[Held], name: str) -> list[tuple[str, str]]:
    """What a filter offers: value and label."""
    if name == "size":
        return [(str(size), size_words(size)) for size in sorted({row.size_ml for row in held})]
    field = {"region": "wide_region", "vintage": "vintage_words"}.get(name, name)
    return [(value, value) for value in sorted({getattr(row, field) for row in held} - {""})]


@own_cellar
@require_http_methods(["GET", "HEAD", "POST"])
def cellar_settings(request: HttpRequest, cellar: Cellar) -> HttpResponse:
    known = list(rates_on(timezone.now().date()))
    form = CellarForm(request.POST or None, instance=cellar, currencies=known)
    if request.method == "POST" and form.is_valid():
        services.change_cellar(cellar=cellar, **form.cleaned_data)
        messages.success(request, "Saved. It holds from the coming night on; the nights before stay as they are.")
        return redirect("cellar")
    return render(request, "cellar/settings.html", {"cellar": cellar, "form": form})
