"""What a webhook says: one notification as a CloudEvent, signed as Standard Webhooks has it. Touches no database.

`webhook-id` is the same on every try of one notification on one channel: whoever remembers it handles each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from alerts import told
from alerts.channels.models import ChannelDelivery
from alerts.models import Notification
from jobs.messages import dumps
from jobs.standard_webhooks import Signed, sign

MET, TEST = "winecellar.alert.notified", "winecellar.test"
MEDIA_TYPE = "application/cloudevents+json"


def webhook_id(delivery: ChannelDelivery) -> str:
    """Stable per (alert, event, channel)."""
    notification = delivery.notification
    told_of = f"{notification.event_id}.{notification.alert_id}" if notification else f"test_{delivery.pk}"
    return f"{told_of}.{delivery.channel_id}"


def cloud_event(delivery: ChannelDelivery) -> bytes:
    """The notification, its alert and wine loaded; the same bytes on every try."""
    notification = delivery.notification
    event = {
        "specversion": "1.0",
        "id": webhook_id(delivery),
        "source": settings.SITE_URL,
        "type": MET if notification else TEST,
        "time": (notification or delivery).created_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": _facts(notification) if notification else {"message": "Notifications will come here."},
    }
    return dumps(event).encode()


def _facts(notification: Notification) -> Mapping[str, Any]:
    return {
        "message": told.headline(notification),
        "alert_id": notification.alert_id,
        "event_id": notification.event_id,
        "wine_id": notification.alert.wine_id,
        "wine_name": told.one_line(str(notification.alert.wine)),
        "merchant_name": told.one_line(notification.merchant_name),
        "currency": notification.currency,
        "new_price": notification.new_price,
        "old_price": notification.old_price,
        "target": notification.target,
        "occurred_at": notification.occurred_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "wine_url": told.wine_url(notification),
        "alert_url": told.alert_url(notification),
    }


def signed_headers(id_: str, body: bytes, *, secrets: Sequence[bytes], now: datetime) -> dict[str, str]:
    """While a secret is replaced there are two, and a signature of each."""
    signed = Signed(id_, str(int(now.timestamp())), "")
    return {
        "Content-Type": MEDIA_TYPE,
        "User-Agent": "Winecellar",
        "webhook-id": id_,
        "webhook-timestamp": signed.timestamp,
        "webhook-signature": " ".join(sign(secret, signed, body) for secret in secrets),
    }
