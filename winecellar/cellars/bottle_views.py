"""Bottles: added by search or by hand, looked at, edited, moved, drunk, and told which wine they are."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from pricing.models import Wine
from pricing.search import Query, find
from pricing.selectors import list_wines
from winecellar.cellars import selectors, services, words
from winecellar.cellars.forms import BottleForm, ConsumeForm, MoveForm
from winecellar.cellars.mine import asked, find_wine, own_cellar
from winecellar.cellars.models import Cellar

FORM_METHODS = ["GET", "HEAD", "POST"]

# --- Adding ----------------------------------------------------------------------------------------------------


@own_cellar
@require_safe
def add_search(request: HttpRequest, cellar: Cellar) -> HttpResponse:
    return render(request, "cellar/add.html", _found(request))


def _found(request: HttpRequest) -> dict[str, Any]:
    search = asked(request, "wine")
    if not search:
        return {"wine_search": ""}
    found = find(Query(text=search), after=request.GET.get("after", ""))
    return {"wine_search": search, "found": found, "wines": list_wines(found.wine_ids, now=timezone.now())}


@own_cellar
@require_http_methods(FORM_METHODS)
def add_wine(request: HttpRequest, cellar: Cellar, wine_id: str) -> HttpResponse:
    wine = find_wine(wine_id)
    known = {
        "name": wine.name,
        "producer": wine.producer,
        "vintage": wine.vintage or "NV",
        "size_ml": wine.size_ml,
        "colour": wine.colour,
        "country": wine.country,
        "region": wine.region,
    }
    return _add(request, cellar, wine, known)


@own_cellar
@require_http_methods(FORM_METHODS)
def add_other(request: HttpRequest, cellar: Cellar) -> HttpResponse:
    return _add(request, cellar, None, {"name": asked(request, "name")[:200]})


def _add(request: HttpRequest, cellar: Cellar, wine: Wine | None, known: dict[str, Any]) -> HttpResponse:
    form = BottleForm(request.POST or None, initial={**known, "quantity": 1}, currency=cellar.currency)
    if request.method == "POST" and form.is_valid():
        try:
            bottle = services.add_bottles(
                cellar=cellar,
                quantity=form.cleaned_data["quantity"],
                facts=form.facts(),
                wine=wine,
                now=timezone.now(),
            )
        except services.RefusedError as error:
            form.add_error("quantity", str(error))
        else:
            messages.success(request, f"Added {words.bottles(bottle.quantity)}. They are valued in the coming night.")
            return redirect("bottle", pk=bottle.pk)
    return render(request, "cellar/edit.html", {"form": form, "wine": wine})


# --- One row of bottles ----------------------------------------------------------------------------------------


@own_cellar
@require_safe
def bottle_page(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
    return _bottle_response(request, cellar, pk)


def _bottle_response(request: HttpRequest, cellar: Cellar, pk: int, **forms: Any) -> HttpResponse:
    bottle = selectors.find_bottle(cellar, pk)
    now = timezone.now()
    values = selectors.values_of(bottle, cellar)
    today = selectors.worth_now(bottle, cellar, now=now)
    context = {
        "cellar": cellar,
        "bottle": bottle,
        "values": [(night, line, words.source(line.source, line.seen_on, night.day)) for night, line in values],
        "today": today,
        "today_source": words.source(today.source, today.seen_on, now.date()),
        "consumptions": list(bottle.consumptions.all()),
        "consume_form": ConsumeForm(today=now.date()),
        "move_form": MoveForm(initial={"quantity": bottle.quantity, "location": bottle.location, "bin": bottle.bin}),
        **forms,
    }
    return render(request, "cellar/bottle.html", context)


@own_cellar
@require_http_methods(FORM_METHODS)
def bottle_edit(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
    bottle = selectors.find_bottle(cellar, pk)
    form = BottleForm(request.POST or None, bottle=bottle, currency=cellar.currency)
    if request.method == "POST" and form.is_valid():
        try:
            services.edit(
                cellar=cellar,
                bottle_id=pk,
                quantity=form.cleaned_data["quantity"],
                facts=form.facts(),
                now=timezone.now(),
            )
        except services.RefusedError as error:
            form.add_error("quantity", str(error))
        else:
            messages.success(request, "Saved.")
            return redirect("bottle", pk=pk)
    return render(request, "cellar/edit.html", {"form": form, "bottle": bottle})


@own_cellar
@require_http_methods(FORM_METHODS)
def bottle_wine(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
    """Which wine of the catalogue it is: GET searches, POST says."""
    bottle = selectors.find_bottle(cellar, pk)
    if request.method == "POST":
        wine_id = request.POST.get("wine", "")
        wine = find_wine(wine_id) if wine_id else None
        services.link(cellar=cellar, bottle_id=pk, wine=wine, now=timezone.now())
        said = f"It is {wine.full_name}: the coming night values it by that wine’s offers." if wine else "Unlinked."
        messages.success(request, said)
        return redirect("bottle", pk=pk)
    found = _found(request) if "wine" in request.GET else {"wine_search": bottle.full_name}
    return render(request, "cellar/wine.html", {"bottle": bottle, **found})


def _action(template_form: str, make: Callable[..., Any], act: Callable[..., str]) -> Callable[..., HttpResponseBase]:
    """A POST on one row with a form of its own, which is shown again on the row's page when something is wrong."""

    @own_cellar
    @require_POST
    def view(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
        now = timezone.now()
        form = make(request.POST, now)
        if form.is_valid():
            try:
                said = act(cellar=cellar, bottle_id=pk, now=now, **form.cleaned_data)
            except services.RefusedError as error:
                form.add_error("quantity", str(error))
            else:
                messages.success(request, said)
                return redirect("bottle", pk=pk)
        return _bottle_response(request, cellar, pk, **{template_form: form})

    return view


def _consume(**said: Any) -> str:
    gone = services.consume(**said)
    return f"{words.bottles(gone.quantity)}: {gone.get_how_display().lower()}, written down."


def _move(**said: Any) -> str:
    bottle = services.move(**said)
    return f"{words.bottles(bottle.quantity)} moved to {bottle.location or 'no location'}."


bottle_consume = _action("consume_form", lambda data, now: ConsumeForm(data, today=now.date()), _consume)
bottle_move = _action("move_form", lambda data, now: MoveForm(data), _move)


@own_cellar
@require_POST
def bottle_remove(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
    services.remove(cellar=cellar, bottle_id=pk)
    messages.success(request, "Struck out, with what was written about it.")
    return redirect("cellar")


@own_cellar
@require_POST
def give_back(request: HttpRequest, cellar: Cellar, pk: int) -> HttpResponse:
    bottle = services.give_back(cellar=cellar, consumption_id=pk, now=timezone.now())
    messages.success(request, "Taken back: the bottles are in the cellar again.")
    return redirect("bottle", pk=bottle.pk)
