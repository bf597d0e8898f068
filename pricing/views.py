"""The list of wines with its search."""

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from pricing.selectors import list_wines


@require_safe
def wine_list(request: HttpRequest) -> HttpResponse:
    search = request.GET.get("q", "").strip()
    if "\x00" in search:
        raise BadRequest("NUL in the search")
    page, wines = list_wines(search=search, page=page_number(request), now=timezone.now())
    return render(request, "wines/list.html", {"search": search, "page": page, "wines": wines})


def page_number(request: HttpRequest) -> int:
    """?page= as a number; 1 when it is none. The selectors clamp it to the pages there are."""
    try:
        return int(request.GET.get("page", "1"))
    except ValueError:
        return 1
