"""System checks about mail: what is half configured is found by `manage.py check`, not by a silent mailbox."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

NOWHERE = ("console", "locmem", "dummy", "filebased")
HERE = {"127.0.0.1", "localhost", "::1"}


@register()
def a_mail_has_time_to_fail(**_: Any) -> Iterable[CheckMessage]:
    if 2 * settings.MAIL_TIMEOUT > settings.EXTERNAL_TIME_LIMIT:
        yield Error(
            "MAIL_TIMEOUT must be at most half of EXTERNAL_TIME_LIMIT.",
            hint="A provider that hangs would have the workers replaced.",
            id="jobs.E015",
        )


@register()
def the_providers_key_is_not_sent_in_the_clear(**_: Any) -> Iterable[CheckMessage]:
    for name, value in settings.ANYMAIL.items():
        if name.endswith("_API_URL") and urlsplit(value).scheme == "http" and urlsplit(value).hostname not in HERE:
            yield Error(
                "EMAIL_URL has tls=false for another machine: the API key would be read on the way.",
                hint="Leave tls=false to stand-ins on this machine.",
                id="jobs.E016",
            )
    plain = not (settings.EMAIL_USE_TLS or settings.EMAIL_USE_SSL)
    if "Smtp" in settings.EMAIL_BACKEND and plain and settings.EMAIL_HOST_PASSWORD and settings.EMAIL_HOST not in HERE:
        yield Error(
            "EMAIL_URL has no TLS, and a password for another machine: it would be read on the way.",
            hint="Write smtp://user:password@host:587/?tls=true, or smtp+ssl://user:password@host:465.",
            id="jobs.E016",
        )


@register()
def the_reports_secret_can_be_used(**_: Any) -> Iterable[CheckMessage]:
    secret, backend = settings.MAIL_WEBHOOK_SECRET, settings.EMAIL_BACKEND
    if secret and "Postmark" in backend and ":" not in secret:
        yield Error("MAIL_WEBHOOK_SECRET must be user:password, as in the webhook's address.", id="jobs.E017")
    if secret and "Resend" in backend and not secret.startswith("whsec_"):
        yield Error("MAIL_WEBHOOK_SECRET must be the signing secret that Resend shows: whsec_…", id="jobs.E017")


@register(Tags.security, deploy=True)
def mails_go_somewhere_and_their_fate_is_heard(**_: Any) -> Iterable[CheckMessage]:
    if not settings.EMAIL_URL or any(f".{name}." in settings.EMAIL_BACKEND for name in NOWHERE):
        yield Error(
            "EMAIL_URL names nobody who takes mail.",
            hint="smtp://user:password@host:587/?tls=true, or resend://key@, or postmark://token@.",
            id="jobs.E018",
        )
    if len(settings.ANYMAIL) > 1 and not settings.MAIL_WEBHOOK_SECRET:
        yield Warning(
            "MAIL_WEBHOOK_SECRET is not set: bounces and complaints are not heard.",
            hint="Set up the provider's webhook as docs/mail.md says.",
            id="jobs.W003",
        )
