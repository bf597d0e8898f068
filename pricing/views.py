"""The list of wines with its search, and a wine's prices as a file."""

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from pricing import charts, search
from pricing.forms import FilterForm
from pricing.models import Wine
from pricing.selectors import list_wines


@require_safe
def wine_list(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "").strip()
    if "\x00" in text:
        raise BadRequest("NUL in the search")
    filters = FilterForm(request.GET)
    query = filters.query(text)
    found = search.find(query, after=request.GET.get("after", ""))
    context = {
        "search": text,
        "filters": filters,
        "query": query,
        "found": found,
        "wines": list_wines(found.wine_ids, now=timezone.now()),
        "counted": search.COUNTED,
    }
    return render(request, "wines/list.html", context)


@require_safe
def prices_csv(request: HttpRequest, wine_id: str) -> StreamingHttpResponse:
    """Every price that was observed of a wine, for a spreadsheet."""
    if "\x00" in wine_id:
        raise BadRequest("NUL in the wine's id")
    wine = get_object_or_404(Wine, pk=wine_id)
    return StreamingHttpResponse(
        charts.write_csv(wine),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{wine.pk}-prices.csv"'},
    )


def page_number(request: HttpRequest) -> int:
    """?page= as a number; 1 when it is none. The selectors clamp it to the pages there are."""
    try:
        return int(request.GET.get("page", "1"))
    except ValueError:
        return 1
