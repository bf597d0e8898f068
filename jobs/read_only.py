"""The admin of what the system itself writes: found, filtered and read."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Nobody adds, changes or deletes. Actions of a subclass have permissions of their own."""

    show_full_result_count = False  # counting a year of rows takes longer than showing a page of them

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
