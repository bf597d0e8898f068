"""What lets merchants in, in the admin: feed keys and signing secrets. Edges only.

Guarantee: both can be created and revoked, never edited; a text is shown once, when it is made.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from jobs.admin import ReadOnlyAdmin
from pricing import keys, signing
from pricing.models import FeedKey, SigningSecret


class CredentialForm(forms.ModelForm):  # type: ignore[type-arg]
    """What both forms ask. The admin saves in the same transaction, so the lock of the limit lasts until then."""

    refuse_at_limit: Any

    def counted(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """What else says which of the merchant's credentials count."""
        return {}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        now = timezone.now()
        if cleaned.get("merchant"):
            try:
                self.refuse_at_limit(merchant=cleaned["merchant"], now=now, **self.counted(cleaned))
            except keys.TooManyKeysError as error:
                raise forms.ValidationError(str(error)) from None
        if cleaned.get("expires_at") and cleaned["expires_at"] <= now:
            self.add_error("expires_at", "That is in the past.")
        return cleaned


class FeedKeyForm(CredentialForm):
    refuse_at_limit = staticmethod(keys.refuse_at_limit)

    class Meta:
        model = FeedKey
        fields = ("merchant", "note", "expires_at")


class SigningSecretForm(CredentialForm):
    refuse_at_limit = staticmethod(signing.refuse_at_limit)
    secret = forms.CharField(
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="The sender's own secret, if it has made one. Leave it empty to have one made.",
    )

    class Meta:
        model = SigningSecret
        fields = ("merchant", "kind", "note", "expires_at")

    def counted(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        return {"kind": cleaned.get("kind", SigningSecret.Kind.STANDARD)}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        try:
            if cleaned.get("secret"):
                signing.read_secret(cleaned["secret"], cleaned.get("kind", ""))
        except ValueError as error:
            self.add_error("secret", str(error))
        return cleaned


class CredentialAdmin(ReadOnlyAdmin):
    list_display: tuple[str, ...] = ("prefix", "merchant", "state", "note", "created_at")
    list_filter = ("merchant",)
    list_select_related = ("merchant",)
    asked: tuple[str, ...] = ("merchant", "note", "expires_at")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return self.asked
        return (*(name for name in self.asked if name != "secret"), "prefix", "state", "created_at")

    @admin.display(description="state")
    def state(self, obj: FeedKey | SigningSecret) -> str:
        return keys.state(obj, now=timezone.now())


@admin.register(FeedKey)
class FeedKeyAdmin(CredentialAdmin):
    form = FeedKeyForm
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.add_feedkey")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.change_feedkey")

    def save_model(self, request: HttpRequest, obj: FeedKey, form: Any, change: bool) -> None:
        key, text = keys.create_key(merchant=obj.merchant, note=obj.note, now=timezone.now(), expires_at=obj.expires_at)
        obj.pk, obj.prefix = key.pk, key.prefix
        self.message_user(request, f"The key of {obj.merchant}, shown only this once: {text}", messages.WARNING)

    @admin.action(description="Revoke: the key stops working at once", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[FeedKey]) -> None:
        for key in queryset:
            with transaction.atomic():  # what was done and who did it
                revoked = keys.revoke_key(key=key, now=timezone.now())
                if revoked:
                    self.log_change(request, key, "Revoked.")
            if revoked:
                self.message_user(request, f"{key} of {key.merchant}: revoked.")


@admin.register(SigningSecret)
class SigningSecretAdmin(CredentialAdmin):
    form = SigningSecretForm
    actions = ("revoke",)
    asked = ("merchant", "kind", "secret", "note", "expires_at")
    list_display = ("prefix", "merchant", "kind", "state", "note", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.add_signingsecret")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.change_signingsecret")

    def save_model(self, request: HttpRequest, obj: SigningSecret, form: Any, change: bool) -> None:
        given = form.cleaned_data["secret"] or None
        kept, text = signing.create_secret(
            merchant=obj.merchant,
            kind=obj.kind,
            note=obj.note,
            now=timezone.now(),
            expires_at=obj.expires_at,
            text=given,
        )
        obj.pk, obj.prefix = kept.pk, kept.prefix
        if given is None:
            told = f"The signing secret of {obj.merchant}, shown only this once: {text}"
            self.message_user(request, told, messages.WARNING)

    @admin.action(description="Revoke: the secret stops working at once", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[SigningSecret]) -> None:
        for secret in queryset:
            with transaction.atomic():
                revoked = signing.revoke_secret(secret=secret, now=timezone.now())
                if revoked:
                    self.log_change(request, secret, "Revoked.")
            if revoked:
                self.message_user(request, f"{secret} of {secret.merchant}: revoked.")
