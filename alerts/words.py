"""What the pages say after an action. The figure comes from the setting that the worker is held to."""

from decimal import Decimal

from django.conf import settings


def first_check() -> str:
    """“a minute”: within what time a new alert is compared with the price now."""
    seconds = int(settings.FIRST_CHECK_PROMISE.total_seconds())
    minutes = -(-seconds // 60)
    return "a minute" if minutes == 1 else f"{minutes} minutes"


def created(*, confirmed: bool) -> str:
    """`confirmed`: whether the owner's address is, without which the alert waits."""
    if not confirmed:
        return "Alert created. It waits until you have confirmed your address."
    return f"Alert created — we'll check prices within {first_check()}."


def resumed(*, confirmed: bool) -> str:
    if not confirmed:
        return "Alert resumed. It waits until you have confirmed your address."
    return f"Alert resumed — we'll check prices within {first_check()}."


def target_changed(target: Decimal, *, paused: bool, confirmed: bool) -> str:
    if paused:
        follows = ". The alert is still paused."
    elif confirmed:
        follows = f" — we'll check prices within {first_check()}."
    else:
        follows = ". The alert waits until you have confirmed your address."
    return f"Target changed to ${target:,.2f}{follows}"


PAUSED = "Alert paused. You will hear nothing about it until you resume it."
DELETED = "Alert deleted. You will hear nothing more about it."
ADDRESS_WORKS = "Mail goes to {email} again."
ADDRESS_WORKS_TOO_SOON = (
    "You said so less than a day ago, and mail came back since. Look what is wrong with it, or use another address."
)
