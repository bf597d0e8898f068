"""System checks about accounts: what a deployment must not leave open, found by `manage.py check --deploy`."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register


@register(Tags.security, deploy=True)
def the_staff_needs_a_second_factor(**_: Any) -> Iterable[CheckMessage]:
    if not settings.STAFF_NEED_SECOND_FACTOR:
        yield Error(
            "STAFF_NEED_SECOND_FACTOR is off: a password alone opens the admin.",
            hint="Leave the variable out. It is meant for the demo.",
            id="accounts.E001",
        )


@register(Tags.security, deploy=True)
def attempts_are_counted_by_client(**_: Any) -> Iterable[CheckMessage]:
    if settings.SECURE_PROXY_SSL_HEADER and not settings.ALLAUTH_TRUSTED_PROXY_COUNT:
        yield Warning(
            "BEHIND_TLS_PROXY is set and TRUSTED_PROXY_COUNT is not: all people seem to have the proxy's address.",
            hint="Say how many proxies of yours a request passes, each of which adds to X-Forwarded-For; else twenty "
            "sign-ups an hour are all there can be.",
            id="accounts.W001",
        )
