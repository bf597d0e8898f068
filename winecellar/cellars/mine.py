"""What the cellar's views share: whose cellar, text that can be one, and 404 for what is another's."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, ObjectDoesNotExist
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from pricing.models import Wine
from winecellar.cellars.services import cellar_of


def own_cellar(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """The view gets the cellar of who is signed in; who is not signs in first, and comes back, but to no POST."""

    @wraps(view)
    def wrapped(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        if request.user.pk is None:
            return redirect_to_login(reverse("cellar") if request.method == "POST" else request.get_full_path())
        cellar = cellar_of(user_id=request.user.pk, now=timezone.now())
        try:
            return view(request, cellar, **kwargs)
        except ObjectDoesNotExist as error:
            raise Http404("Not there, or another person's") from error

    return wrapped


def asked(request: HttpRequest, name: str) -> str:
    """A text of the address."""
    text = request.GET.get(name, "").strip()
    if "\x00" in text:
        raise BadRequest(f"NUL in {name}")
    return text


def find_wine(wine_id: str) -> Wine:
    """Raises Wine.DoesNotExist."""
    if "\x00" in wine_id:
        raise BadRequest("NUL in the wine's id")
    return Wine.objects.get(pk=wine_id)
