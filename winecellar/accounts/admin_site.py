"""The admin's door: signing in is the site's own page, and the staff needs a second factor to pass.

Guarantee: without one, no page of the admin opens; the person is led to set it up. Named in admin_config.py.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

from winecellar.accounts import words
from winecellar.accounts.second_factor import may_operate


class OperatorSite(AdminSite):
    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and may_operate(request.user)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Where Django sends whoever has no permission: to sign in, to set up a second factor, or nowhere."""
        wanted = request.GET.get("next", "")
        inside = url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
        following = wanted if inside else reverse("admin:index")
        if self.has_permission(request):
            return redirect(following)
        if not request.user.is_authenticated:
            return redirect(f"{reverse('account_login')}?{urlencode({'next': following})}")
        if not super().has_permission(request):
            raise PermissionDenied
        messages.info(request, words.ADMIN_NEEDS_A_SECOND_FACTOR)
        return redirect("mfa_index")
