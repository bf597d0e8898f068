"""The admin of prices. Edges only: parse, one call of a service, one message.

What the feed writes (offers, history, held prices) is read-only here; a held price is released or rejected. What lets
merchants in is in admin_credentials.py, what waits to be matched in admin_listings.py, files in admin_catalogues.py,
what came in admin_received.py.
"""

from __future__ import annotations

from collections.abc import Callable

from django import forms
from django.contrib import admin, messages
from django.db import models, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from jobs.admin import ReadOnlyAdmin
from pricing import admin_catalogues, admin_credentials, admin_listings, admin_received, codes, holds, wines
from pricing.models import Availability, ExchangeRate, HeldPrice, Merchant, Offer, PriceHistory, Wine
from pricing.rules import Verdict
from pricing.services import UnknownWineError

__all__ = ["admin_catalogues", "admin_credentials", "admin_listings", "admin_received"]  # they register themselves


@admin.register(Merchant)
class MerchantAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "id", "website")
    search_fields = ("id", "name")
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}

    def get_readonly_fields(self, request: HttpRequest, obj: Merchant | None = None) -> tuple[str, ...]:
        return ("id", "created_at") if obj else ("created_at",)


class WineForm(forms.ModelForm):  # type: ignore[type-arg]
    """Takes the numbers as people write them."""

    gtin = forms.CharField(required=False, label="GTIN", help_text="The bottle's bar code.")
    lwin = forms.CharField(required=False, label="LWIN", help_text="Its first seven digits count.")

    def clean_gtin(self) -> str:
        text: str = self.cleaned_data["gtin"]
        return self._read(codes.read_gtin, text) if text else ""

    def clean_lwin(self) -> str:
        text: str = self.cleaned_data["lwin"]
        return self._read(lambda text: codes.read_lwin(text).wine, text) if text else ""

    def _read(self, read: Callable[[str], str], text: str) -> str:
        try:
            return read(text)
        except codes.InvalidCodeError as error:
            raise forms.ValidationError(str(error)) from None


@admin.register(Wine)
class WineAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = WineForm
    list_display = ("name", "vintage", "producer", "size_ml", "country", "region", "retired_at")
    list_filter = ("colour", "country")
    search_fields = ("id", "name", "producer", "region", "=gtin", "=lwin")

    def get_readonly_fields(self, request: HttpRequest, obj: Wine | None = None) -> tuple[str, ...]:
        return ("id", "created_at") if obj else ("created_at",)

    def save_model(self, request: HttpRequest, obj: Wine, form: forms.ModelForm, change: bool) -> None:  # type: ignore[type-arg]
        super().save_model(request, obj, form, change)
        wines.describe(wines=[obj], now=timezone.now())


@admin.register(Offer)
class OfferAdmin(ReadOnlyAdmin):
    list_display = (
        *("wine", "merchant", "price_usd", "native_price", "native_currency"),
        *("occurred_at", "seen_at", "withdrawn_at"),
    )
    list_filter = ("merchant",)
    list_select_related = ("wine", "merchant")
    search_fields = ("wine__id", "wine__name")


@admin.register(PriceHistory)
class PriceHistoryAdmin(ReadOnlyAdmin):
    list_display = ("wine_id", "merchant_id", "price_usd", "observed_at", "late", "event_id")
    search_fields = ("=wine__id",)
    ordering = ("-id",)


@admin.register(Availability)
class AvailabilityAdmin(ReadOnlyAdmin):
    list_display = ("wine_id", "merchant_id", "observed_at", "price_usd", "event_id")
    search_fields = ("=wine__id",)
    ordering = ("-id",)


@admin.register(ExchangeRate)
class ExchangeRateAdmin(ReadOnlyAdmin):
    list_display = ("day", "currency", "per_eur", "source")
    list_filter = ("currency",)
    date_hierarchy = "day"


@admin.register(HeldPrice)
class HeldPriceAdmin(ReadOnlyAdmin):
    list_display = (
        *("wine", "merchant", "cause", "price_usd", "native_price", "native_currency"),
        *("last_price_usd", "occurred_at", "held_at"),
    )
    list_filter = ("cause", "merchant")
    list_select_related = ("wine", "merchant")
    actions = ("release", "reject")

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.change_heldprice")

    @admin.action(description="Release: the price is right, publish it", permissions=["settle"])
    def release(self, request: HttpRequest, queryset: QuerySet[HeldPrice]) -> None:
        for held in queryset:
            try:
                with transaction.atomic():  # what was done and who did it
                    outcome = holds.release(held_id=held.pk, by=str(request.user.pk), now=timezone.now())
                    if outcome and outcome.verdict is not Verdict.NO_RATE:
                        self.log_change(request, held, f"Released: {outcome.verdict.value}.")
            except UnknownWineError:
                self.message_user(request, f"{held}: that wine is no longer listed. Reject it.", messages.ERROR)
                continue
            if outcome and outcome.verdict is Verdict.NO_RATE:
                message = f"{held}: no rate of {held.native_currency} is known at all, so it waits on. Load one."
                self.message_user(request, message, messages.ERROR)
            elif outcome:
                self.message_user(request, f"{held}: released, {outcome.verdict.value}.")

    @admin.action(description="Reject: the price is wrong, drop it", permissions=["settle"])
    def reject(self, request: HttpRequest, queryset: QuerySet[HeldPrice]) -> None:
        for held in queryset:
            with transaction.atomic():
                rejected = holds.reject(held_id=held.pk)
                if rejected:
                    self.log_change(request, held, "Rejected.")
            if rejected:
                self.message_user(request, f"{held}: rejected.")
