"""Alerts, what was decided about them and their mails, to look at only: people change theirs on their own pages.

Addresses that take no mail and people's channels are in admin_ways.py.
"""

from django.contrib import admin

from alerts import admin_ways
from alerts.models import Alert, Decision, Notification
from jobs.admin import ReadOnlyAdmin

__all__ = ["admin_ways"]  # which registers itself


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    list_display = ("id", "user", "wine", "merchant", "kind", "currency", "target", "state", "deleted_at", "created_at")
    list_filter = ("state", "kind", "currency")
    list_select_related = ("user", "wine", "merchant")
    search_fields = ("user__email", "wine__name", "=wine__id")


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    list_display = ("decided_at", "alert", "outcome", "price", "merchant_name", "reason", "event_id")
    list_filter = ("outcome",)
    list_select_related = ("alert",)
    search_fields = ("=event_id", "=alert__id")


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "alert", "state", "currency", "old_price", "new_price", "merchant_name", "settled_at")
    list_filter = ("state",)
    list_select_related = ("alert",)
    search_fields = ("=event_id", "=alert__id")
