"""The alert-waking subscription: alerts that waited for their owner's address are compared with the prices now.

Guarantee: whoever confirms an address has every alert that was waiting looked at, in line with the wines' prices. One
that is met already says nothing new by this, and a paused one stays so. Locks the wines in id order, then the alerts,
as creating an alert does. Handles `user.address_confirmed`.
"""

from __future__ import annotations

from collections.abc import Sequence

from alerts.events import ALERT_CREATED
from alerts.models import Alert
from jobs.messages import Message, NewMessage
from jobs.outbox import publish
from pricing.models import Wine


def wake(messages: Sequence[Message]) -> None:
    """Have these people's waiting alerts compared. Raises PermanentError for a message without a person."""
    users = {message.number("user_id") for message in messages}
    waiting = Alert.live.filter(user_id__in=users, state__in=[Alert.State.PENDING, Alert.State.ARMED])
    wine_ids = set(waiting.values_list("wine_id", flat=True))
    list(Wine.objects.select_for_update(no_key=True).filter(pk__in=wine_ids).order_by("pk"))
    alerts = list(waiting.filter(wine_id__in=wine_ids).select_for_update(no_key=True).order_by("pk"))
    Alert.objects.filter(pk__in=[alert.pk for alert in alerts]).update(state=Alert.State.PENDING)
    publish(
        [
            NewMessage(type=ALERT_CREATED, key=alert.wine_id, body={"alert_id": alert.pk, "wine_id": alert.wine_id})
            for alert in alerts
        ]
    )


def check(message: Message) -> None:
    """Raises PermanentError for a command that names nothing."""
    message.number("user_id")
