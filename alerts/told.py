"""What a notification says in one line, and where it leads: for the mail, the centre, the Atom feed and the channels.

Pure reads; the alert and its wine must be loaded.
"""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse

from alerts.models import Notification
from alerts.money import said


def headline(notification: Notification) -> str:
    """“Ch. Montrose 2016 is $154.00 at Merchant X, below your $160.00”, on one line whatever the names hold."""
    price = said(notification.new_price, notification.currency)
    return one_line(f"{notification.alert.wine} is {price} at {notification.merchant_name}, {news(notification)}")


def news(notification: Notification) -> str:
    """Why it was told: “below your $160.00”, or what the alert waited for instead of a price, as “back in stock”."""
    if notification.target is None:
        return notification.reason
    where = "at" if notification.new_price == notification.target else "below"
    return f"{where} your {said(notification.target, notification.currency)}"


def one_line(text: str) -> str:
    """Without what a header, a log, an XML document or a chat would stumble over: line ends of every sort, controls,
    and marks that are not seen but turn what follows (bidi)."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def wine_url(notification: Notification) -> str:
    return str(settings.SITE_URL) + reverse("wine", args=[notification.alert.wine_id])


def alert_url(notification: Notification) -> str:
    return str(settings.SITE_URL) + reverse("alert", args=[notification.alert_id])
