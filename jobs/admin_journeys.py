"""Journeys in the admin: a search, and one event's page. Edges only: each parses, makes one call, renders.

Whoever may not “view journey” finds nothing here. A link from anywhere: `admin:jobs_journey_changelist` with `?q=`.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from jobs.journey import selectors
from jobs.journey.hooks import load_journeys
from jobs.journey.models import Journey
from jobs.read_only import ReadOnlyAdmin


@admin.register(Journey)
class JourneyAdmin(ReadOnlyAdmin):
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Find events; where it is one, its journey."""
        self._may_look(request)
        text, error = request.GET.get("q", "").strip(), ""
        found = []
        try:
            found = selectors.find(text)
        except ValueError as wrong:
            error = str(wrong)
        if len(found) == 1:
            return redirect("admin:jobs_journey_change", quote(found[0].event_id))
        return self._page(request, "find", "Journeys", text=text, found=found, error=error)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._may_look(request)
        event_id = unquote(object_id)
        journey = None
        if len(event_id) <= selectors.LONGEST_SEARCH and "\x00" not in event_id:
            journey = selectors.journey(event_id)
        if journey is None:
            return self._page(request, "find", "Journeys", text=event_id, found=[], error="", status=404)
        return self._page(request, "journey", f"Journey of {event_id}", journey=journey, text="")

    def _may_look(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, name: str, title: str, *, status: int = 200, **context: Any) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/jobs/journey/{name}.html",
            {
                **self.admin_site.each_context(request),
                "title": title,
                "opts": self.opts,
                "hint": load_journeys().hint,
                "may_see_letters": request.user.has_perm("jobs.view_deadletter"),
                **context,
            },
            status=status,
        )
