"""How allauth behaves here: its mails become rows and commands, its words are ours, confirming is one step.

Guarantee: no mail is sent inside a request; a mail and the change it tells of are committed together wherever the
caller's transaction holds both. No link and no limit depends on the request's Host header.
"""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.account.stages import EmailVerificationStage
from allauth.core import ratelimit
from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from winecellar.accounts import services, words
from winecellar.accounts.letters import write
from winecellar.accounts.models import User


class ConfirmationStage(EmailVerificationStage):
    """Signing up ends at “look into your mail”, for a new address and a known one alike. Signing in does not ask: an
    account whose address is not confirmed may be used, and its alerts wait."""

    def handle(self) -> Any:
        return super().handle() if self.login.signup else (None, True)


class AccountAdapter(DefaultAccountAdapter):
    error_messages = DefaultAccountAdapter.error_messages | words.ERRORS

    def get_login_stages(self) -> list[str]:
        ours = f"{ConfirmationStage.__module__}.{ConfirmationStage.__qualname__}"
        theirs = "allauth.account.stages.EmailVerificationStage"
        return [ours if stage == theirs else stage for stage in super().get_login_stages()]

    def confirm_email(self, request: HttpRequest, email_address: EmailAddress) -> bool:
        """Make this the person's address; if they had none that was confirmed, their alerts begin to be watched."""
        try:
            with transaction.atomic():
                was_confirmed = services.lock(email_address.user_id).address_is_confirmed
                if not super().confirm_email(request, email_address):
                    return False
                if not was_confirmed:
                    services.announce_confirmed(user_id=email_address.user_id)
                return True
        except IntegrityError:  # an account that never confirmed it has this address
            self.say(messages.ERROR, "account/messages/email_confirmation_failed.txt", email=email_address.email)
            return False

    # --- Mail ----------------------------------------------------------------------------------------------------

    def send_notification_mail(
        self, template_prefix: str, user: Any, context: dict[str, Any] | None = None, email: str | None = None
    ) -> None:
        self.send_mail(template_prefix, email or user.email, {**(context or {}), "user": user})

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        owner = context.get("user") or User.objects.filter(email=email).first()
        services.queue_mail(to=email, user=owner, letter=write(template_prefix, context), now=timezone.now())

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        return _address("account_confirm_email", key=emailconfirmation.key)

    def get_reset_password_from_key_url(self, key: str) -> str:
        uid, _, token = key.partition("-")
        return _address("account_reset_password_from_key", uidb36=uid, key=token)

    def send_link(self, request: HttpRequest, address: EmailAddress) -> bool:
        """Send the link that confirms an address; False where one was sent a moment ago."""
        if not ratelimit.consume(request, action="confirm_email", key=address.email.lower()):
            return False
        address.send_confirmation(request)
        return True

    # --- Words ---------------------------------------------------------------------------------------------------

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: str | None = None,
        message_context: dict[str, Any] | None = None,
        extra_tags: str = "",
        message: str | None = None,
    ) -> None:
        if message is not None:
            messages.add_message(request, level, message, extra_tags=extra_tags)
        elif message_template:
            self.say(level, message_template, **(message_context or {}))

    def say(self, level: int, name: str, **facts: Any) -> None:
        if name in words.MESSAGES:
            messages.add_message(self.request, level, words.MESSAGES[name].format(**facts))

    # --- Who is asking -------------------------------------------------------------------------------------------

    def get_client_ip(self, request: HttpRequest) -> str:
        """The address to count by. A header too short for the proxies we trust did not come through them."""
        forwarded = request.headers.get("X-Forwarded-For", "")
        if forwarded and len(forwarded.split(",")) < settings.ALLAUTH_TRUSTED_PROXY_COUNT:
            return str(request.META.get("REMOTE_ADDR") or "unknown")
        return str(super().get_client_ip(request))

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """allauth's has the Host header in it, with its port: whoever counts up the port would be counted anew."""
        return str(credentials.get("email", credentials.get("username", ""))).lower()

    def is_ajax(self, request: HttpRequest) -> bool:
        return False  # the pages are the only interface; another header does not make it another one

    def get_email_verification_redirect_url(self, email_address: EmailAddress) -> str:
        if self.request.user.is_authenticated:
            return reverse("account")
        return f"{reverse('account_login')}?{urlencode({'next': reverse('alerts')})}"

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account")


def _address(name: str, **parts: str) -> str:
    return str(settings.SITE_URL) + reverse(name, kwargs=parts)
