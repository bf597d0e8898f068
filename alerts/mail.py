"""What an alert's mail says. Composed from the notification row, so that it reads the same however late it is sent."""

from __future__ import annotations

from decimal import Decimal

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse

from alerts import words
from alerts.models import Notification
from alerts.money import said
from jobs.smtp import stable_message_id


def message_id(notification: Notification) -> str:
    """Stable per (alert, event): every try of this mail carries the same one."""
    return stable_message_id(f"alert-{notification.alert_id}.{notification.event_id}")


def compose(notification: Notification) -> EmailMultiAlternatives:
    """The mail with its text and HTML parts; the alert, its wine and its user must be loaded."""
    alert = notification.alert
    wine = alert.wine
    context = {
        "wine": wine,
        "merchant": notification.merchant_name,
        "new_price": said(notification.new_price, notification.currency),
        "old_price": None if notification.old_price is None else said(notification.old_price, notification.currency),
        "change": _change(notification.old_price, notification.new_price),
        "target": None if notification.target is None else said(notification.target, notification.currency),
        "news": _news(notification),
        "asked": words.asked_for(alert),
        "occurred_at": notification.occurred_at.strftime("%d %B %Y, %H:%M UTC").lstrip("0"),
        "name": alert.user.get_short_name(),
        "wine_url": settings.SITE_URL + reverse("wine", args=[wine.pk]),
        "alert_url": settings.SITE_URL + reverse("alert", args=[alert.pk]),
        "promise_minutes": int(settings.ALERT_PROMISE.total_seconds() // 60),
    }
    mail = EmailMultiAlternatives(
        subject=_one_line("{wine} is {new_price} at {merchant}, {news}".format(**context)),
        body=render_to_string("alerts/mail/alert.txt", context),
        from_email=settings.MAIL_FROM,
        to=[alert.user.email],
        headers={
            "Message-ID": message_id(notification),
            "X-Winecellar-Event-ID": notification.event_id,
            "X-Winecellar-Alert-ID": str(notification.alert_id),
            "Auto-Submitted": "auto-generated",
        },
    )
    mail.attach_alternative(render_to_string("alerts/mail/alert.html", context), "text/html")
    return mail


def _news(notification: Notification) -> str:
    """Why this is worth a mail: “below your $160.00”, “the lowest in 90 days”, “back in stock”."""
    if notification.target is None:
        return notification.reason
    where = "at" if notification.new_price == notification.target else "below"
    return f"{where} your {said(notification.target, notification.currency)}"


def _change(old: Decimal | None, new: Decimal) -> str | None:
    """“18.5 % less”, or None when there was no price before or it is the same."""
    if old is None or old == new:
        return None
    percent = abs(new - old) / old * 100
    return f"{percent:.1f} % {'less' if new < old else 'more'}"


def _one_line(text: str) -> str:
    """A header's text: a newline in a wine's name must not end the header, nor stop the queue."""
    return " ".join(text.split())
