"""System checks about purchases: an order of steps that cannot be undone, a provider that is half configured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from winecellar.purchases import saga

HERE = ("http://127.0.0.1", "http://localhost", "http://[::1]")


@register()
def what_cannot_be_undone_comes_last(**_: Any) -> Iterable[CheckMessage]:
    for problem in saga.problems(saga.SAGA):
        yield Error(problem, hint="See winecellar/purchases/saga.py.", id="purchases.E001")


@register()
def an_exchange_has_time_to_fail(**_: Any) -> Iterable[CheckMessage]:
    if 4 * settings.PAYMENT_TIMEOUT > settings.EXTERNAL_TIME_LIMIT:
        yield Error(
            "PAYMENT_TIMEOUT must be at most a quarter of EXTERNAL_TIME_LIMIT: one effect takes up to four exchanges.",
            id="purchases.E002",
        )


@register()
def the_secret_key_is_not_sent_in_the_clear(**_: Any) -> Iterable[CheckMessage]:
    base = settings.PAYMENTS.api_base if settings.PAYMENTS else ""
    if base.startswith("http://") and not base.startswith(HERE):
        yield Error(
            "PAYMENTS_URL has tls=false for another machine: the secret key would be read on the way.",
            hint="Leave tls=false to stand-ins on this machine.",
            id="purchases.E003",
        )


@register(Tags.security, deploy=True)
def the_providers_reports_are_heard(**_: Any) -> Iterable[CheckMessage]:
    if settings.PAYMENTS and not settings.PAYMENTS_WEBHOOK_SECRET:
        yield Warning(
            "PAYMENTS_WEBHOOK_SECRET is not set: charges and refunds that change later are not heard of.",
            hint="Set up the provider's webhook as docs/purchases.md says.",
            id="purchases.W001",
        )
