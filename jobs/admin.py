"""The queue in the admin, to be looked at. Changing a subscription is `manage.py subscriptions`.

The schedule and its incidents are in admin_schedule.py, dead letters in admin_dead_letters.py, journeys in
admin_journeys.py.
"""

from django.contrib import admin

from jobs import admin_dead_letters, admin_journeys, admin_schedule
from jobs.models import Subscription
from jobs.read_only import ReadOnlyAdmin

__all__ = ["ReadOnlyAdmin", "admin_dead_letters", "admin_journeys", "admin_schedule"]  # they register themselves


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    list_display = ("name", "message_types", "ordered", "partitions", "paused_at", "batch", "concurrency")
