"""The queue in the admin, to be looked at. Changing a subscription is `manage.py subscriptions`."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from jobs.models import DeadLetter, Subscription


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Found, filtered and read; nobody adds, changes or deletes. For all that the system itself writes."""

    show_full_result_count = False  # counting a year of rows takes longer than showing a page of them

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    list_display = ("event_id", "subscription_name", "cause", "reason", "receive_count", "dead_lettered_at")
    list_filter = ("subscription_name", "cause")
    search_fields = ("=event_id", "=key")
    ordering = ("-id",)


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    list_display = ("name", "message_types", "ordered", "partitions", "paused_at", "batch", "concurrency")
