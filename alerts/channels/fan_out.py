"""Has each new notification delivered on its owner's channels. Called by matching, in the transaction of its mail.

Guarantee: one delivery for each (alert, event, channel), with the command that gets it posted, or none of both. One
statement however many were told; nothing more where nobody of them has a channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.backends.utils import CursorWrapper

from alerts.events import DELIVER_TO_CHANNEL
from jobs.database import run
from jobs.messages import NewMessage, dumps
from jobs.outbox import publish

INSERT = """
INSERT INTO alerts_channeldelivery (channel_id, notification_id)
SELECT channel.id, told.id
FROM jsonb_to_recordset(%(told)s::jsonb) AS new (event_id text, alerts bigint[])
CROSS JOIN unnest(new.alerts) AS about (alert_id)
JOIN alerts_alert alert ON alert.id = about.alert_id
JOIN alerts_channel channel ON channel.user_id = alert.user_id AND channel.off_at IS NULL
JOIN alerts_notification told ON told.alert_id = alert.id AND told.event_id = new.event_id
ORDER BY told.id, channel.id
ON CONFLICT (channel_id, notification_id) DO NOTHING
RETURNING id, channel_id, notification_id
"""


def begin(told: Mapping[str, Sequence[int]]) -> CursorWrapper:
    """Make the deliveries: `told` are the alerts, by event, that have new notifications. Theirs is what `finish` gets.

    Two steps, since in a pipeline this one asks and does not wait.
    """
    rows = [{"event_id": event_id, "alerts": alerts} for event_id, alerts in told.items()]
    return run(INSERT, {"told": dumps(rows)}, keep_plan=False)


def finish(begun: CursorWrapper, *, told: Mapping[int, str], attributes: Mapping[str, Mapping[str, str]]) -> int:
    """Have them posted. `told`: the notifications, by id, with their events; `attributes`: of the commands, by event.

    Returns how many deliveries were made.
    """
    made = begun.fetchall()
    publish([command(delivery_id, channel_id, attributes[told[pk]]) for delivery_id, channel_id, pk in made])
    return len(made)


def command(delivery_id: int, channel_id: int, attributes: Mapping[str, str] | None = None) -> NewMessage:
    """The command that gets one delivery posted: its first try, and each that follows."""
    return NewMessage(
        type=DELIVER_TO_CHANNEL,
        key=f"channel:{channel_id}",
        body={"channel_delivery_id": delivery_id, "channel_id": channel_id},
        attributes=attributes or {},
    )
