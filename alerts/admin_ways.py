"""Ways to people in the admin: addresses that take no mail, and their channels. Edges only.

Guarantee: a channel's address and its secrets are never shown, nor its test's body. A suppression is lifted only by
those who may change one, with a reason that stands in its history.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone

from alerts import suppressions
from alerts.models import Channel, ChannelDelivery, Suppression
from jobs.admin import ReadOnlyAdmin


class LiftForm(forms.Form):
    reason = forms.CharField(
        max_length=500, help_text="It stays in the history. After a complaint, lift it at the provider too."
    )


class StillHoldsFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("holds", "Takes no mail"), ("lifted", "Lifted")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Suppression]) -> QuerySet[Suppression]:
        known = self.value() in {"holds", "lifted"}
        return queryset.filter(lifted_at__isnull=self.value() == "holds") if known else queryset


@admin.register(Suppression)
class SuppressionAdmin(ReadOnlyAdmin):
    list_display = ("address", "why", "since", "lifted_at")
    list_filter = (StillHoldsFilter, "why")
    search_fields = ("=address",)
    ordering = ("-since",)
    fields = ("user", "address", "why", "since", "lifted_at", "lift_again_at")
    change_form_template = "admin/alerts/suppression/change_form.html"

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [path("<int:pk>/lift/", wrap(self.lift_view), name="alerts_suppression_lift"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        fits = object_id.isdecimal() and len(object_id) < 19
        holds = fits and Suppression.objects.filter(pk=int(object_id), lifted_at=None).exists()
        lift = {"lift": LiftForm()} if holds and self._may_lift(request) else {}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **lift})

    def lift_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        if request.method != "POST" or not self._may_lift(request):
            raise PermissionDenied
        known = Suppression.objects.filter(pk=pk).first()
        if known is None:
            raise Http404
        form = LiftForm(request.POST)
        if not form.is_valid():
            messages.error(request, f"Nothing was lifted. Reason: {form.errors['reason'].as_text()}")
        elif suppressions.lift_for(user_id=pk, by=str(request.user.pk), now=timezone.now()):
            self.log_change(request, known, f"Lifted: {form.cleaned_data['reason']}")
            messages.success(request, f"Mail goes to {known.address} again.")
        else:
            messages.warning(request, "It was lifted already.")
        return redirect("admin:alerts_suppression_change", pk)

    def _may_lift(self, request: HttpRequest) -> bool:
        return request.user.has_perm("alerts.change_suppression")


@admin.register(Channel)
class ChannelAdmin(ReadOnlyAdmin):
    list_display = ("id", "user", "kind", "shown", "told_at", "given_up", "off_at", "off_because")
    list_filter = ("kind", ("off_at", admin.EmptyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("user__email", "shown")
    fields = (
        *("user", "kind", "shown", "created_at", "told_at", "retry_at", "given_up", "off_at", "off_because"),
        *("signs", "old_secret_until"),
    )

    @admin.display(description="signed with")
    def signs(self, channel: Channel) -> str:
        return "a secret that only its owner has" if channel.sealed_secret else "nothing"


@admin.register(ChannelDelivery)
class ChannelDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "channel", "notification", "state", "tries", "answer", "settled_at")
    list_filter = ("state",)
    list_select_related = ("channel", "notification")
    search_fields = ("=channel__id", "=notification__event_id")
