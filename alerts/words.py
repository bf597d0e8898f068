"""What the pages say after an action. The figure comes from the setting that the worker is held to."""

from decimal import Decimal

from django.conf import settings


def first_check() -> str:
    """“a minute”: within what time a new alert is compared with the price now."""
    seconds = int(settings.FIRST_CHECK_PROMISE.total_seconds())
    minutes = -(-seconds // 60)
    return "a minute" if minutes == 1 else f"{minutes} minutes"


def created() -> str:
    return f"Alert created — we'll check prices within {first_check()}."


def resumed() -> str:
    return f"Alert resumed — we'll check prices within {first_check()}."


def target_changed(target: Decimal, *, paused: bool) -> str:
    follows = ". The alert is still paused." if paused else f" — we'll check prices within {first_check()}."
    return f"Target changed to ${target:,.2f}{follows}"


PAUSED = "Alert paused. You will hear nothing about it until you resume it."
DELETED = "Alert deleted. You will hear nothing more about it."
