"""Where listings wait to be matched, in the admin. Edges only.

Guarantee: what the merchant says is shown and never edited; a person chooses the wine, from the suggestions or any
other, or sets the listing aside.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from pricing import listing_state, listing_wines, listings, matching
from pricing.models import Listing, Wine


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("waiting", "Waiting"), ("matched", "Matched"), ("aside", "Set aside")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Listing]) -> QuerySet[Listing]:
        match self.value():
            case "waiting":
                return queryset.filter(wine__isnull=True, set_aside_at__isnull=True)
            case "matched":
                return queryset.filter(wine__isnull=False)
            case "aside":
                return queryset.filter(set_aside_at__isnull=False)
        return queryset


class ListingForm(forms.ModelForm):  # type: ignore[type-arg]
    suggestion = forms.ChoiceField(
        required=False, widget=forms.RadioSelect, help_text="Wines that share words with it, likeliest first."
    )
    other = forms.CharField(required=False, label="Another wine", help_text="Its id, such as wn_4417.", max_length=40)

    class Meta:
        model = Listing
        fields = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        likely = [wine.wine_id for wine in listing_wines.suggestions(self.instance)]
        wines = Wine.objects.in_bulk(likely)
        self.fields["suggestion"].choices = [  # type: ignore[attr-defined]
            (wine.pk, f"{wine.full_name}, {wine.producer}, {wine.size_ml} ml ({wine.pk})")
            for wine in map(wines.__getitem__, likely)
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        chosen = {cleaned.get("suggestion"), cleaned.get("other")} - {None, ""}
        if len(chosen) != 1:
            raise forms.ValidationError("Choose one wine.")
        wine = Wine.objects.filter(pk=chosen.pop(), retired_at__isnull=True).first()
        if wine is None:
            raise forms.ValidationError("We do not list that wine, or no longer.")
        if against := matching.objection(listing_state.as_listed(self.instance), listing_state.candidate(wine)):
            raise forms.ValidationError(against)
        return {**cleaned, "wine": wine}


@admin.register(Listing)
class ListingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = ListingForm
    list_display = ("title", "merchant", "vintage", "size_ml", "pack", "price", "currency", "wine", "unclear")
    list_filter = (StateFilter, "merchant")
    list_select_related = ("merchant", "wine")
    search_fields = ("title", "=source_id", "=gtin", "=wine__id")
    show_full_result_count = False
    actions = ("set_aside",)
    said = ("merchant", "source_id", "title", "vintage", "non_vintage", "pack", "size_ml", "gtin", "lwin", "unclear")
    readonly_fields = (*said, "price", "currency", "occurred_at", "wine", "matched_by", "set_aside_at")
    fields = (*readonly_fields, "suggestion", "other")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.change_listing")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.fields if self.has_change_permission(request, obj) else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: Listing, form: Any, change: bool) -> None:
        wine = form.cleaned_data["wine"]
        try:
            result = listings.match(listing_id=obj.pk, wine_id=wine.pk, by=str(request.user.pk), now=timezone.now())
        except listings.MismatchError as error:  # it was changed between the form's check and now
            self.message_user(request, str(error), messages.ERROR)
            return
        told = f"its price is {result.outcome.verdict.value}" if result.outcome else f"kept: {result.kept}"
        self.message_user(request, f"{obj} is {wine} from now on; {told}.")

    @admin.action(description="Set aside: this is no wine of ours", permissions=["settle"])
    def set_aside(self, request: HttpRequest, queryset: QuerySet[Listing]) -> None:
        for listing in queryset:
            with transaction.atomic():  # what was done and who did it
                aside = listings.set_aside(listing_id=listing.pk, now=timezone.now())
                if aside:
                    self.log_change(request, listing, "Set aside.")
            if aside:
                self.message_user(request, f"{listing}: set aside.")
            else:
                self.message_user(request, f"{listing} does not wait.", messages.WARNING)
