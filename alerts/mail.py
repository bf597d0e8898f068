"""What an alert's mail says. Composed from the notification row, so that it reads the same however late it is sent."""

from __future__ import annotations

from decimal import Decimal

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse

from alerts import unsubscribe, words
from alerts.models import Notification
from alerts.money import said
from alerts.told import news, one_line
from alerts.unsubscribe import Scope, Wish
from jobs.mail.transport import stable_message_id


def message_id(notification: Notification) -> str:
    """Stable per (alert, event): every try of this mail carries the same one."""
    return stable_message_id(f"alert-{notification.alert_id}.{notification.event_id}")


def compose(notification: Notification) -> EmailMultiAlternatives:
    """The mail with its text and HTML parts; the alert, its wine and its user must be loaded.

    The same bytes each time, since a provider that knows the key compares: nothing here may say when it was made.
    """
    alert = notification.alert
    wine = alert.wine
    this_alert, all_alerts = Wish(Scope.ALERT, alert.user_id, alert.pk), Wish(Scope.ALERTS, alert.user_id)
    context = {
        "wine": wine,
        "merchant": notification.merchant_name,
        "new_price": said(notification.new_price, notification.currency),
        "old_price": None if notification.old_price is None else said(notification.old_price, notification.currency),
        "change": _change(notification.old_price, notification.new_price),
        "target": None if notification.target is None else said(notification.target, notification.currency),
        "news": news(notification),
        "asked": words.asked_for(alert),
        "occurred_at": notification.occurred_at.strftime("%d %B %Y, %H:%M UTC").lstrip("0"),
        "name": alert.user.get_short_name(),
        "wine_url": settings.SITE_URL + reverse("wine", args=[wine.pk]),
        "alert_url": settings.SITE_URL + reverse("alert", args=[alert.pk]),
        "stop_url": unsubscribe.link(this_alert),
        "stop_all_url": unsubscribe.link(all_alerts),
    }
    mail = EmailMultiAlternatives(
        subject=subject(str(wine), "is {new_price} at {merchant}, {news}".format(**context)),
        body=render_to_string("alerts/mail/alert.txt", context),
        from_email=settings.MAIL_FROM,
        to=[alert.user.email],
        headers={
            "Message-ID": message_id(notification),
            "X-Winecellar-Event-ID": notification.event_id,
            "X-Winecellar-Alert-ID": str(notification.alert_id),
            "Auto-Submitted": "auto-generated",
            **unsubscribe.headers(this_alert),
        },
    )
    mail.attach_alternative(render_to_string("alerts/mail/alert.html", context), "text/html")
    return mail


def _change(old: Decimal | None, new: Decimal) -> str | None:
    """“18.5 % less”, or None when there was no price before or it is the same."""
    if old is None or old == new:
        return None
    percent = abs(new - old) / old * 100
    return f"{percent:.1f} % {'less' if new < old else 'more'}"


def subject(name: str, says: str) -> str:
    """One line: whatever is in a wine's name, it cannot end the header, nor turn the line's direction, nor push out
    what the mail says. The name is shortened first."""
    name, says = one_line(name), one_line(says)[: settings.MAIL_SUBJECT_LONGEST - 2]
    room = settings.MAIL_SUBJECT_LONGEST - len(says) - 1
    return f"{name if len(name) <= room else name[: room - 1].rstrip() + '…'} {says}"
