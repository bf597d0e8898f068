"""The queue in the admin, to be looked at. Changing a subscription is `manage.py subscriptions`.

The schedule and its incidents are in admin_schedule.py.
"""

from django.contrib import admin

from jobs import admin_schedule
from jobs.models import DeadLetter, Subscription
from jobs.read_only import ReadOnlyAdmin

__all__ = ["ReadOnlyAdmin", "admin_schedule"]  # the latter registers itself


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    list_display = ("event_id", "subscription_name", "cause", "reason", "receive_count", "dead_lettered_at")
    list_filter = ("subscription_name", "cause")
    search_fields = ("=event_id", "=key")
    ordering = ("-id",)


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    list_display = ("name", "message_types", "ordered", "partitions", "paused_at", "batch", "concurrency")
