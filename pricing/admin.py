"""The admin of prices. Edges only: parse, one call of a service, one message.

What the feed writes (offers, history, held prices) is read-only here; a feed key can be created and revoked, never
read or edited; a held price is released or rejected.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from jobs.admin import ReadOnlyAdmin
from pricing import holds, keys
from pricing.models import FeedKey, HeldPrice, Merchant, Offer, PriceHistory, Wine
from pricing.services import UnknownWineError


@admin.register(Merchant)
class MerchantAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "id", "website")
    search_fields = ("id", "name")
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}

    def get_readonly_fields(self, request: HttpRequest, obj: Merchant | None = None) -> tuple[str, ...]:
        return ("id", "created_at") if obj else ("created_at",)


@admin.register(Wine)
class WineAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "vintage", "producer", "size_ml", "country", "region", "retired_at")
    list_filter = ("colour", "country")
    search_fields = ("id", "name", "producer", "region")

    def get_readonly_fields(self, request: HttpRequest, obj: Wine | None = None) -> tuple[str, ...]:
        return ("id", "created_at") if obj else ("created_at",)


@admin.register(Offer)
class OfferAdmin(ReadOnlyAdmin):
    list_display = ("wine", "merchant", "price_usd", "occurred_at", "seen_at")
    list_filter = ("merchant",)
    list_select_related = ("wine", "merchant")
    search_fields = ("wine__id", "wine__name")


@admin.register(PriceHistory)
class PriceHistoryAdmin(ReadOnlyAdmin):
    list_display = ("wine_id", "merchant_id", "price_usd", "observed_at", "late", "event_id")
    search_fields = ("=wine__id",)
    ordering = ("-id",)


@admin.register(HeldPrice)
class HeldPriceAdmin(ReadOnlyAdmin):
    list_display = ("wine", "merchant", "price_usd", "last_price_usd", "occurred_at", "held_at")
    list_filter = ("merchant",)
    list_select_related = ("wine", "merchant")
    actions = ("release", "reject")

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.change_heldprice")

    @admin.action(description="Release: the price is right, publish it", permissions=["settle"])
    def release(self, request: HttpRequest, queryset: QuerySet[HeldPrice]) -> None:
        for held in queryset:
            try:
                outcome = holds.release(held_id=held.pk, by=str(request.user.pk), now=timezone.now())
            except UnknownWineError:
                self.message_user(request, f"{held}: that wine is no longer listed. Reject it.", messages.ERROR)
                continue
            if outcome:
                self.log_change(request, held, f"Released: {outcome.verdict.value}.")
                self.message_user(request, f"{held}: released, {outcome.verdict.value}.")

    @admin.action(description="Reject: the price is wrong, drop it", permissions=["settle"])
    def reject(self, request: HttpRequest, queryset: QuerySet[HeldPrice]) -> None:
        for held in queryset:
            if holds.reject(held_id=held.pk):
                self.log_change(request, held, "Rejected.")
                self.message_user(request, f"{held}: rejected.")


class FeedKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = FeedKey
        fields = ("merchant", "note", "expires_at")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        now = timezone.now()
        if cleaned.get("merchant"):
            try:  # the admin saves in the same transaction, so the lock that this takes lasts until then
                keys.refuse_at_limit(merchant=cleaned["merchant"], now=now)
            except keys.TooManyKeysError as error:
                raise forms.ValidationError(str(error)) from None
        if cleaned.get("expires_at") and cleaned["expires_at"] <= now:
            self.add_error("expires_at", "That is in the past.")
        return cleaned


@admin.register(FeedKey)
class FeedKeyAdmin(ReadOnlyAdmin):
    form = FeedKeyForm
    list_display = ("prefix", "merchant", "state", "note", "created_at")
    list_filter = ("merchant",)
    list_select_related = ("merchant",)
    actions = ("revoke",)

    def get_fields(self, request: HttpRequest, obj: FeedKey | None = None) -> tuple[str, ...]:
        shown_later = ("prefix", "state", "created_at") if obj else ()
        return ("merchant", "note", "expires_at", *shown_later)

    @admin.display(description="state")
    def state(self, obj: FeedKey) -> str:
        return keys.state(obj, now=timezone.now())

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.add_feedkey")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.change_feedkey")

    def save_model(self, request: HttpRequest, obj: FeedKey, form: Any, change: bool) -> None:
        key, text = keys.create_key(merchant=obj.merchant, note=obj.note, now=timezone.now(), expires_at=obj.expires_at)
        obj.pk, obj.prefix = key.pk, key.prefix
        self.message_user(request, f"The key of {obj.merchant}, shown only this once: {text}", messages.WARNING)

    @admin.action(description="Revoke: the key stops working at once", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[FeedKey]) -> None:
        for key in queryset:
            if keys.revoke_key(key=key, now=timezone.now()):
                self.log_change(request, key, "Revoked.")
                self.message_user(request, f"{key} of {key.merchant}: revoked.")
