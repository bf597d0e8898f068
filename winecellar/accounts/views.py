"""The pages about one's own account. Most are allauth's views with our forms and templates; here is what differs.

None names a person in its address: there is nobody else's page to ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.decorators import reauthentication_required
from allauth.account.models import EmailAddress
from allauth.account.views import ConfirmEmailView, EmailView, PasswordResetFromKeyView, SignupView
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from winecellar.accounts import services, words
from winecellar.accounts.export import export
from winecellar.accounts.forms import EraseForm
from winecellar.accounts.models import User
from winecellar.accounts.second_factor import has_app

RETRY_AFTER_SECONDS = 60


def too_many(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """429, for all that is limited."""
    response = render(request, "429.html", status=429)
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


class SignUpView(SignupView):
    """The account, its address and the mail that asks for its confirmation are committed together."""

    def form_valid(self, form: Any) -> HttpResponseBase:
        with transaction.atomic():
            response: HttpResponseBase = super().form_valid(form)
        return response


class ConfirmAddressView(ConfirmEmailView):
    """A link that does not work (any more) is a 400, by GET and POST alike."""

    def render_to_response(self, context: dict[str, Any], **options: Any) -> Any:
        if not context["confirmation"]:
            options["status"] = 400
        return super().render_to_response(context, **options)

    def post(self, *args: Any, **options: Any) -> Any:
        try:
            return super().post(*args, **options)
        except Http404:
            return self.get(*args, **options)


class SetPasswordView(PasswordResetFromKeyView):
    """A link that does not work (any more) is a 400."""

    def render_to_response(self, context: dict[str, Any], **options: Any) -> Any:
        if context.get("token_fail"):
            options["status"] = 400
        return super().render_to_response(context, **options)


def readable(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A page that shows what is sealed; where that cannot be read any more, words and the way back, not a failure."""

    @wraps(view)
    def shown(request: HttpRequest) -> HttpResponseBase:
        try:
            return view(request)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return redirect("mfa_index")

    return shown


@login_required
@never_cache
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """What stands about one's account, and where to change each."""
    person = _person(request)
    context = {
        "has_app": has_app(person),
        "proposed": EmailAddress.objects.filter(user=person, primary=False).first(),
    }
    return render(request, "account/account.html", context)


class AddressView(EmailView):
    """The address, another one to change to, and the link that confirms either, sent again."""

    def _action_send(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        row = self._get_email_address(request)
        if row is not None and not row.verified:
            _say_link(request, row, sent=get_adapter(request).send_link(request, row))

    def _action_primary(self, request: HttpRequest, *args: Any, **options: Any) -> None:
        """Not offered: an address becomes the person's by being confirmed, and in no other way."""

    def form_valid(self, form: Any) -> HttpResponseBase:
        with transaction.atomic():
            response: HttpResponseBase = super().form_valid(form)
        _say_link(self.request, form.row, sent=form.sent)
        return response

    def get_context_data(self, **options: Any) -> dict[str, Any]:
        proposed = EmailAddress.objects.filter(user=self.request.user, primary=False).first()
        return {**super().get_context_data(**options), "proposed": proposed}


@reauthentication_required(app="allauth.account")  # type: ignore[untyped-decorator]
@never_cache
@require_safe
def export_data(request: HttpRequest) -> HttpResponseBase:
    """All of one's data as a file. The password is asked for first: the file holds everything in one place."""
    response = StreamingHttpResponse(
        export(person=_person(request), now=timezone.now()), content_type="application/json; charset=utf-8"
    )
    response["Content-Disposition"] = 'attachment; filename="winecellar-data.json"'
    return response


@sensitive_post_parameters("password")
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def erase_account(request: HttpRequest) -> HttpResponse:
    """Forget the account, with the password again."""
    person = _person(request)
    form = EraseForm(request.POST or None, user=person)
    if request.method == "POST" and form.is_valid():
        try:
            services.erase(user=person)
        except services.EraseRefusedError as error:
            form.add_error("password", str(error))
        else:
            logout(request)
            messages.success(request, words.ERASED)
            return redirect("home")
    return render(request, "account/erase.html", {"form": form})


def _say_link(request: HttpRequest, address: EmailAddress, *, sent: bool) -> None:
    says = words.LINK_SENT if sent else words.LINK_SENT_BEFORE
    messages.info(request, says.format(email=address.email))


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User), "behind login_required"
    return request.user
