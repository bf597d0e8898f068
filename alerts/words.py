"""What the pages and mails say about an alert: what it waits for, what became of it. Figures come from the settings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings

from alerts.models import Alert
from alerts.money import said


def waits_for(alert: Alert) -> str:
    """“$150.00 or less”, “a new low of 90 days”, “its return”: what an alert waits for, from whomever."""
    match alert.kind:
        case Alert.Kind.LOW:
            return "a new low" if alert.low_days is None else f"a new low of {alert.low_days} days"
        case Alert.Kind.BACK:
            return "its return"
    assert alert.target is not None, "the schema says so"
    return f"{said(alert.target, alert.currency)} or less"


def asked_for(alert: Alert) -> str:
    """“when it is at $150.00 or less”: what its owner asked to be told."""
    match alert.kind:
        case Alert.Kind.LOW:
            return f"when it is at {waits_for(alert)}"
        case Alert.Kind.BACK:
            return "when it is back in stock"
    return f"when it costs {waits_for(alert)}"


def standing(alert: Alert, *, confirmed: bool, now: datetime) -> str:
    """The chip's word: what holds for the alert as we look, which its state alone does not say."""
    if alert.deleted_at is not None:
        return "Deleted"
    if alert.expires_at is not None and alert.expires_at <= now:
        return "Expired"
    if alert.state == Alert.State.PAUSED:
        return "Paused"
    if not confirmed:
        return "Address not confirmed"
    if alert.snoozed_until_rise:
        return "Snoozed until it rises"
    if alert.snoozed_until is not None and alert.snoozed_until > now:
        return f"Snoozed until {_when(alert.snoozed_until, now)}"
    if alert.state == Alert.State.PENDING:
        return "Checking…"
    if alert.kind == Alert.Kind.BACK:
        return "Waiting" if alert.state == Alert.State.ARMED else "In stock"
    return str(alert.get_state_display())


def _when(at: datetime, now: datetime) -> str:
    """“Fri 09:12”, “21 Mar”: a weekday only where it can be but one."""
    at = at.astimezone(UTC)
    return f"{at:%a %H:%M} UTC" if at - now < timedelta(days=7) else f"{at.day} {at:%b}"


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


def changed(alert: Alert, *, confirmed: bool) -> str:
    if alert.state == Alert.State.PAUSED:
        follows = " It is still paused."
    elif alert.state != Alert.State.PENDING:
        follows = ""
    elif confirmed:
        follows = f" We’ll check prices within {first_check()}."
    else:
        follows = " It waits until you have confirmed your address."
    return f"Alert changed.{follows}"


def snoozed(alert: Alert, now: datetime) -> str:
    if alert.snoozed_until_rise:
        return "Snoozed: no further mail until the price has risen above your target."
    assert alert.snoozed_until is not None
    return f"Snoozed until {_when(alert.snoozed_until, now)}. If the price is met then, you are told then."


def undo_days() -> str:
    days = settings.ALERT_UNDO.days
    return "a day" if days == 1 else f"{days} days"


def alerts(count: int) -> str:
    return "an alert" if count == 1 else f"{count} alerts"


def deleted(count: int = 1) -> str:
    what = "Alert" if count == 1 else f"{count} alerts"
    return f"{what} deleted. You can undo that for {undo_days()}."


PAUSED = "Alert paused. You will hear nothing about it until you resume it."
RESTORED = "Brought back, and compared with the prices now."
