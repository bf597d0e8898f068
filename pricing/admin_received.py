"""What merchants sent, in the admin: raw bodies, and webhooks that are about no product. Edges only; no change.

Guarantee: a body is shown as text, cut, and with what looks like a secret masked.
"""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs.admin import ReadOnlyAdmin
from pricing import raw_bodies
from pricing.models import IgnoredWebhook, RawBody

LONGEST_SHOWN = 20_000  # letters; the rest is for readapt, not for eyes


@admin.register(RawBody)
class RawBodyAdmin(ReadOnlyAdmin):
    list_display = ("id", "merchant", "source", "size", "received_at")
    list_filter = ("source", "merchant")
    list_select_related = ("merchant",)
    search_fields = ("=id",)
    fields = ("merchant", "source", "received_at", "size", "headers", "shown_body")

    def get_queryset(self, request: HttpRequest) -> QuerySet[RawBody]:
        return super().get_queryset(request).defer("body")  # a page of the list needs none

    @admin.display(description="body")
    def shown_body(self, raw: RawBody) -> str:
        text = raw_bodies.readable(raw)
        return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + " …"


@admin.register(IgnoredWebhook)
class IgnoredWebhookAdmin(ReadOnlyAdmin):
    list_display = ("merchant", "system", "count", "last_topic", "last_at")
    list_select_related = ("merchant",)
