"""Buying: the price confirmed, the purchase as it stands, what was bought before. Another's purchase is a 404."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from winecellar.purchases import selectors, services
from winecellar.purchases.forms import BuyForm, fresh_form
from winecellar.purchases.models import Purchase, StockItem
from winecellar.purchases.services import BuyRefusedError, PriceChangedError

LONGEST_ID = 18  # digits of a bigint that is certain to be one


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def buy(request: HttpRequest, pk: int) -> HttpResponse:
    """The price, to be confirmed; and with that, the purchase. The form sent twice leads to the same purchase."""
    item = StockItem.objects.select_related("wine", "merchant").filter(pk=pk).first()
    if item is None:
        raise Http404("No such stock")
    if request.method != "POST":
        return _buy_page(request, item, fresh_form(item))
    form = BuyForm(request.POST, item=item)
    if not form.is_valid():
        return _buy_page(request, item, fresh_form(item), refused="Choose how many bottles. Nothing was bought.")
    try:
        purchase = services.buy(buyer=request.user, item_id=pk, now=timezone.now(), **form.cleaned_data)
    except BuyRefusedError as error:
        item.refresh_from_db(fields=["price", "currency", "on_hand", "reserved"])
        # A new token: what is confirmed now is another purchase.
        again = fresh_form(item, quantity=form.cleaned_data["quantity"])
        return _buy_page(request, item, again, refused=str(error), before=_before(form, error))
    return redirect("purchase", pk=purchase.pk)


def _before(form: BuyForm, error: BuyRefusedError) -> dict[str, object] | None:
    """The price that was confirmed, to be shown beside the one now."""
    if not isinstance(error, PriceChangedError):
        return None
    return {"price": form.cleaned_data["unit_price"], "currency": form.cleaned_data["currency"]}


def _buy_page(
    request: HttpRequest, item: StockItem, form: BuyForm, *, refused: str = "", before: dict[str, object] | None = None
) -> HttpResponse:
    assert request.user.pk is not None, "behind login_required"
    context = {
        "item": item,
        "form": form,
        "card": selectors.card_of(request.user.pk),
        "confirmed": bool(getattr(request.user, "address_is_confirmed", False)),
        "sold": bool(item.free) and item.wine.retired_at is None,
        "refused": refused,
        "before": before,
    }
    return render(request, "purchases/buy.html", context)


@login_required
@never_cache
@require_safe
def purchase_page(request: HttpRequest, pk: int) -> HttpResponse:
    assert request.user.pk is not None, "behind login_required"
    try:
        view = selectors.standing(user_id=request.user.pk, pk=pk)
    except Purchase.DoesNotExist as error:
        raise Http404("No such purchase of this person") from error
    return render(request, "purchases/detail.html", {"view": view, "purchase": view.purchase})


@login_required
@require_safe
def purchase_list(request: HttpRequest) -> HttpResponse:
    assert request.user.pk is not None, "behind login_required"
    before = request.GET.get("before", "")
    number = int(before) if before.isascii() and before.isdigit() and len(before) <= LONGEST_ID else None
    found = selectors.history(user_id=request.user.pk, before=number)
    card = selectors.card_of(request.user.pk)
    return render(request, "purchases/list.html", {"found": found, "later": number is not None, "card": card})


@login_required
@require_http_methods(["POST"])
def card_remove(request: HttpRequest) -> HttpResponse:
    services.forget_card(user=request.user, now=timezone.now())
    messages.success(request, "The card is removed here. Purchases under way go on with it.")
    return redirect("purchases")
