"""Has each new notification delivered on its owner's channels. Called by matching, in the transaction of its mail.

Guarantee: one delivery for each (alert, event, channel), with the command that gets it posted, or none of both. One
statement however many were told; nothing more where nobody of them has a channel.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connection

from alerts.events import DELIVER_TO_CHANNEL
from jobs.messages import NewMessage, dumps
from jobs.outbox import follow_up, publish

INSERT = """
INSERT INTO alerts_channeldelivery (channel_id, notification_id)
SELECT channel.id, told.id
FROM jsonb_array_elements_text(%s::jsonb) WITH ORDINALITY AS new (id, place)
JOIN alerts_notification told ON told.id = new.id::bigint
JOIN alerts_alert alert ON alert.id = told.alert_id
JOIN alerts_channel channel ON channel.user_id = alert.user_id AND channel.off_at IS NULL
ORDER BY new.place, channel.id
ON CONFLICT (channel_id, notification_id) DO NOTHING
RETURNING id, channel_id, notification_id
"""


def fan_out(told: Mapping[int, str], *, attributes: Mapping[str, Mapping[str, str]]) -> int:
    """`told`: new notifications, by id, with their events. `attributes`: by event, what their mails carry too.

    Returns how many deliveries were made.
    """
    if not told:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [dumps(list(told))])
        made = cursor.fetchall()
    publish(
        [
            command(delivery_id, channel_id, follow_up(attributes.get(told[pk], {}), caused_by=told[pk]))
            for delivery_id, channel_id, pk in made
        ]
    )
    return len(made)


def command(delivery_id: int, channel_id: int, attributes: Mapping[str, str] | None = None) -> NewMessage:
    """The command that gets one delivery posted: its first try, and each that follows."""
    return NewMessage(
        type=DELIVER_TO_CHANNEL,
        key=f"channel:{channel_id}",
        body={"channel_delivery_id": delivery_id, "channel_id": channel_id},
        attributes=attributes or {},
    )
