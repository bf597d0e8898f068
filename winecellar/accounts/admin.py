"""People in the admin: found by address or name; accounts are made here until there is a sign-up page."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from winecellar.accounts.forms import PersonChangeForm, PersonCreationForm
from winecellar.accounts.models import User


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    form = PersonChangeForm
    add_form = PersonCreationForm
    list_display = ("email", "name", "is_active", "is_staff", "joined_at")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("email", "name")
    ordering = ("email",)
    readonly_fields = ("joined_at", "last_login")
    fieldsets = (
        (None, {"fields": ("email", "password", "name")}),
        ("May", {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        ("When", {"fields": ("joined_at", "last_login")}),
    )
    add_fieldsets = ((None, {"classes": ("wide",), "fields": ("email", "usable_password", "password1", "password2")}),)
