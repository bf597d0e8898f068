"""The queue in the admin: each part registers itself, and the breakers are here.

The operators' page and the subscriptions are in admin_operations.py, the schedule and its incidents in
admin_schedule.py, dead letters in admin_dead_letters.py, journeys in admin_journeys.py.
"""

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs import admin_dead_letters, admin_journeys, admin_operations, admin_schedule, breaker
from jobs.models import Breaker
from jobs.read_only import ReadOnlyAdmin

__all__ = ["ReadOnlyAdmin", "admin_dead_letters", "admin_journeys", "admin_operations", "admin_schedule"]


@admin.register(Breaker)
class BreakerAdmin(ReadOnlyAdmin):
    """Other sides that effects depend on, such as the mail provider: whether they are well."""

    list_display = ("name", "state", "opened_at", "probe_at", "last_failed_at", "reason")
    fields = ("name", "state", "opened_at", "probe_at", "last_failed_at", "failed", "succeeded", "level", "reason")
    actions = ("retry",)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("jobs.change_breaker")

    @admin.display(description="state")
    def state(self, row: Breaker) -> str:
        if row.opened_at is None:
            return "well" if not row.failed else "well, with failures of late"
        return "away: one probe is under way" if row.probe_until else "away: nothing is sent until the next probe"

    @admin.action(description="Try it again at once", permissions=["operate"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Breaker]) -> None:
        for row in queryset:
            if row.opened_at is None:
                self.message_user(request, f"{row} is not away.", messages.WARNING)
                continue
            with transaction.atomic():
                breaker.close(row.name)
                self.log_change(request, row, "Tried again at once.")
            self.message_user(request, f"{row}: everything that waits is tried again.")
