"""Purchases in the admin: what is under way by state and age, one purchase with its evidence, and what a person may do.

Edges only. Stock is set here; of a purchase nothing is edited, it is resumed, compensated or marked as resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Min, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone

from jobs.read_only import ReadOnlyAdmin
from jobs.words import span
from winecellar.purchases import services, words
from winecellar.purchases.models import Entry, Money, Purchase, PurchaseMail, Seller, StockItem
from winecellar.purchases.rules import ENDED, NEEDS_PERSON, Event, RefusedError, State

RUNBOOK = "docs/runbooks/purchases.md"


@dataclass(frozen=True)
class Act:
    event: Event
    label: str
    meaning: str

    @property
    def permission(self) -> str:
        return f"purchases.{self.event.value}_purchase"


ACTS = {
    act.event.value: act
    for act in (
        Act(Event.RESUME, "Resume", "Have the provider asked again, and what is known settled."),
        Act(
            Event.COMPENSATE,
            "Compensate",
            "Have it undone: the bottles go back, the charge is called off, and refunded if it was made.",
        ),
        Act(Event.RESOLVE, "Mark as resolved", "You have settled it by hand. Say how: nothing more is done about it."),
    )
}


class Standing(admin.SimpleListFilter):
    title = "standing"
    parameter_name = "standing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("person", "Needs a person"), ("open", "Under way"), ("ended", "Ended")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Purchase]) -> QuerySet[Purchase]:
        ended = [state.value for state in sorted(ENDED)]
        match self.value():
            case "person":
                return queryset.filter(state__in=[state.value for state in NEEDS_PERSON]).order_by("changed_at")
            case "open":
                return queryset.exclude(state__in=ended).order_by("changed_at")
            case "ended":
                return queryset.filter(state__in=ended)
        return queryset


class ReasonForm(forms.Form):
    note = forms.CharField(label="Why", max_length=500, widget=forms.Textarea(attrs={"rows": 3, "cols": 60}))


@admin.register(Purchase)
class PurchaseAdmin(ReadOnlyAdmin):
    list_display = (
        "reference",
        "state",
        "age",
        "wine_name",
        "merchant_name",
        "quantity",
        "amount",
        "currency",
        "attempts",
    )
    list_filter = (Standing, "state")
    search_fields = ("=reference", "=intent_id", "=buyer__email")

    @admin.display(description="in this state for", ordering="changed_at")
    def age(self, purchase: Purchase) -> str:
        return span(timezone.now() - purchase.changed_at)

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/act/<slug:name>/", wrap(self.decide_view), name="purchases_purchase_decide"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, under how many are in each state that is not an end, and since when."""
        under_way = Purchase.objects.order_by().exclude(state__in=[state.value for state in sorted(ENDED)])
        rows = under_way.values("state").annotate(count=Count("pk"), oldest=Min("changed_at")).order_by("oldest")
        figures = [(row["state"], row["count"], row["oldest"], row["state"] in NEEDS_PERSON) for row in rows]
        return super().changelist_view(request, {"figures": figures, "runbook": RUNBOOK, **(extra_context or {})})

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One purchase with all that is known of it."""
        purchase = self._purchase(request, object_id)
        return self._page(
            request,
            "case",
            purchase,
            entries=Entry.objects.filter(purchase=purchase),
            money=Money.objects.filter(purchase=purchase),
            mails=PurchaseMail.objects.filter(purchase=purchase),
            acts=[act for act in ACTS.values() if request.user.has_perm(act.permission)],
            says=words.SAYS[State(purchase.state)],
            needs_person=purchase.state in NEEDS_PERSON,
            keys=[f"{purchase.reference}-{step}" for step in ("open", "charge", "refund-1")],
        )

    def decide_view(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        """Asks why, and does it."""
        purchase = self._purchase(request, str(pk))
        act = ACTS.get(name)
        if act is None:
            raise Http404
        if not request.user.has_perm(act.permission):
            raise PermissionDenied
        form = ReasonForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                services.intervene(
                    purchase_id=pk,
                    event=act.event,
                    by=str(request.user.pk),
                    note=form.cleaned_data["note"],
                    now=timezone.now(),
                )
            except RefusedError as error:
                form.add_error(None, str(error))
            else:
                messages.success(request, f"{purchase.reference}: {words.EVENTS[act.event].lower()}.")
                return redirect("admin:purchases_purchase_change", pk)
        return self._page(request, "decide", purchase, act=act, form=form)

    def _purchase(self, request: HttpRequest, object_id: str) -> Purchase:
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = Purchase.objects.select_related("buyer", "item").filter(pk=object_id if object_id.isdecimal() else 0)
        purchase = found.first() if len(object_id) <= 18 else None
        if purchase is None:
            raise Http404
        return purchase

    def _page(self, request: HttpRequest, name: str, purchase: Purchase, **context: Any) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/purchases/purchase/{name}.html",
            {
                **self.admin_site.each_context(request),
                "title": str(purchase),
                "opts": self.opts,
                "purchase": purchase,
                "runbook": RUNBOOK,
                **context,
            },
        )


class StockForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_on_hand(self) -> int:
        on_hand: int = self.cleaned_data["on_hand"]
        if on_hand < self.instance.reserved:
            raise forms.ValidationError(f"{self.instance.reserved} of them are reserved by people who are paying now.")
        return on_hand


@admin.register(StockItem)
class StockItemAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = StockForm
    list_display = ("wine", "merchant", "on_hand", "reserved", "price", "currency", "changed_at")
    list_filter = ("merchant",)
    list_select_related = ("wine", "merchant")
    search_fields = ("wine__id", "wine__name")
    autocomplete_fields = ("wine", "merchant")
    fields = ("merchant", "wine", "on_hand", "reserved", "price", "currency", "changed_at")

    def get_readonly_fields(self, request: HttpRequest, obj: StockItem | None = None) -> tuple[str, ...]:
        return ("reserved", "changed_at", *(("merchant", "wine") if obj else ()))

    def has_delete_permission(self, request: HttpRequest, obj: StockItem | None = None) -> bool:
        return False  # purchases name it; set it to none on hand

    def save_model(self, request: HttpRequest, obj: StockItem, form: Any, change: bool) -> None:
        """Under its lock, for somebody may be buying; what was reserved since the page was shown is not undone."""
        saved = services.set_stock(
            merchant=obj.merchant,
            wine=obj.wine,
            on_hand=obj.on_hand,
            price=obj.price,
            currency=obj.currency,
            now=timezone.now(),
        )
        obj.pk = saved.pk


@admin.register(Seller)
class SellerAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("merchant", "orders_to")
    list_select_related = ("merchant",)
    search_fields = ("merchant__name", "orders_to")
    autocomplete_fields = ("merchant",)
