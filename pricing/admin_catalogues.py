"""Catalogue files in the admin: uploaded, watched while they are taken, and read about afterwards. Edges only.

Guarantee: a file is added by who may add one, and never edited; how a merchant's files are read is in its settings.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminSplitDateTime
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from jobs.admin import ReadOnlyAdmin
from pricing.catalogues import files, refresh, report, source
from pricing.models import CatalogueFile, CatalogueSettings

REFRESH_SECONDS = 2


class UploadForm(forms.ModelForm):  # type: ignore[type-arg]
    upload = forms.FileField(label="File", help_text="CSV, tabs or XML, packed with gzip or not.")
    as_of = forms.SplitDateTimeField(
        required=False,
        widget=AdminSplitDateTime,
        label="As of",
        help_text="The time (UTC) of which its prices are. Empty: now.",
    )

    class Meta:
        model = CatalogueFile
        fields = ("merchant",)

    def clean_upload(self) -> Any:
        upload = self.cleaned_data["upload"]
        if upload.size > settings.CATALOGUE_MAX_BYTES:
            raise forms.ValidationError(str(files.FileTooLargeError()))
        return upload

    def clean_as_of(self) -> datetime | None:
        as_of: datetime | None = self.cleaned_data["as_of"]
        if as_of and as_of > timezone.now() + settings.FEED_CLOCK_TOLERANCE:
            raise forms.ValidationError("That is in the future.")
        return as_of


@admin.register(CatalogueFile)
class CatalogueFileAdmin(ReadOnlyAdmin):
    form = UploadForm
    change_form_template = "admin/pricing/cataloguefile/change_form.html"
    list_display = ("id", "merchant", "name", "status", "received_at", "seen", "changed", "rejected", "absent", "error")
    list_filter = ("status", "merchant")
    list_select_related = ("merchant",)
    search_fields = ("=id", "name", "=sha256")
    actions = ("accept_size",)
    shown = ("merchant", "name", "status", "error", "as_of", "received_at", "finished_at", "bytes", "sha256")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.add_cataloguefile")

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pricing.change_cataloguesettings")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("merchant", "upload", "as_of") if obj is None else self.shown

    def save_model(self, request: HttpRequest, obj: CatalogueFile, form: Any, change: bool) -> None:
        now = timezone.now()
        upload = form.cleaned_data["upload"]
        kept = files.receive(
            merchant=obj.merchant,
            name=upload.name,
            data=upload.chunks(),
            as_of=form.cleaned_data["as_of"] or now,
            send=True,
            by=str(request.user.pk),
            now=now,
        )
        obj.pk, obj.name = kept.pk, kept.name

    def response_add(
        self, request: HttpRequest, obj: CatalogueFile, post_url_continue: str | None = None
    ) -> HttpResponse:
        self.message_user(request, f"{obj} was received. Its rows are taken as soon as a worker is free.")
        return redirect("admin:pricing_cataloguefile_change", obj.pk)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        file = CatalogueFile.objects.filter(pk=object_id).first() if object_id.isdigit() else None
        told = {}
        if file is not None:
            told = {
                "report": report.as_json(file),
                "counts": [(report.MEANING[name], getattr(file, name)) for name in report.COUNTS],
                "refresh_seconds": None if file.status in CatalogueFile.FINISHED else REFRESH_SECONDS,
            }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **told})

    @admin.action(description="Accept its size: compare the next file with this one", permissions=["settle"])
    def accept_size(self, request: HttpRequest, queryset: QuerySet[CatalogueFile]) -> None:
        for file in queryset.order_by("pk"):
            with transaction.atomic():  # what was done and who did it
                accepted = refresh.accept_size(file_id=file.pk)
                if accepted:
                    self.log_change(request, file, f"Accepted its size: {file.rows} rows.")
            if accepted:
                self.message_user(request, f"{file}: the next file is compared with its {file.rows:,} rows.")
            else:
                self.message_user(request, f"{file} was not taken whole.", messages.WARNING)


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    """Refuses what the readers could not follow, and says which field."""

    class Meta:
        model = CatalogueSettings
        fields = (
            *("merchant", "format", "encoding", "delimiter", "decimal_sign", "unit", "currency", "tax", "columns"),
            *("open_end", "absent", "smallest_share", "take_broken"),
        )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                source.file_settings(CatalogueSettings(**cleaned))
            except (ValueError, TypeError, AttributeError) as error:
                field, _, reason = str(error).partition(": ")
                self.add_error(*((field, reason) if field in self.fields else ("columns", str(error))))
        return cleaned


@admin.register(CatalogueSettings)
class CatalogueSettingsAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = SettingsForm
    list_display = ("merchant", "format", "absent", "smallest_share", "rows", "as_of")
    list_select_related = ("merchant",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("merchant",) if obj else ()
