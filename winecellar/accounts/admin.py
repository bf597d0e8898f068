"""People in the admin: found by address or name. An address that an operator types is confirmed by its owner."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.http import HttpRequest

from jobs.admin import ReadOnlyAdmin
from winecellar.accounts import services
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

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """A new address is not confirmed: its owner gets the link, and hears of no price before."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            if "email" in form.changed_data:
                row = services.set_address(user=obj, email=obj.email)
                get_adapter().send_link(request, row)

    # One at a time, so that somebody looks at whom they erase.
    def get_actions(self, request: HttpRequest) -> Any:
        return {name: action for name, action in super().get_actions(request).items() if name != "delete_selected"}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not (obj is not None and obj.is_staff)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What goes with a person is theirs: it needs no permission for each kind of row."""
        deleted, counts, _needed, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, set(), protected

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        services.erase(user=obj)


# Addresses and second factors are changed by those whose they are. An operator looks, and takes a lost factor away.
admin.site.unregister(EmailAddress)
admin.site.unregister(Authenticator)


@admin.register(EmailAddress)
class AddressAdmin(ReadOnlyAdmin):
    list_display = ("email", "user", "primary", "verified")
    list_filter = ("primary", "verified")
    list_select_related = ("user",)
    search_fields = ("email", "user__email")


@admin.register(Authenticator)
class SecondFactorAdmin(ReadOnlyAdmin):
    list_display = ("user", "type", "created_at", "last_used_at")
    list_filter = ("type",)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    fields = ("user", "type", "created_at", "last_used_at")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Somebody who lost phone and codes asks an operator, who knows them; the admin's log says who did it."""
        return request.user.has_perm("mfa.delete_authenticator")
