"""The alerts' event and command as JSON Schema, in the manner of pricing/event_schemas.py. Pure."""

from alerts.events import ALERT_CREATED, DELIVER_TO_CHANNEL, SEND_ALERT_EMAIL, SEND_DIGEST_EMAIL
from pricing.event_schemas import Schema, contract, event
from pricing.events import LONGEST_ID

SCHEMAS: dict[str, Schema] = {
    ALERT_CREATED: event(
        ALERT_CREATED,
        "1.0",
        "An alert is to be compared with the prices now: it is new, was changed, or was resumed.",
        {
            "alert_id": contract("Which alert.", type="integer", minimum=1),
            "wine_id": contract("The wine it watches.", type="string", minLength=1, maxLength=LONGEST_ID),
        },
    ),
    SEND_ALERT_EMAIL: event(
        SEND_ALERT_EMAIL,
        "1.0",
        "A command: send a mail that was decided on.",
        {
            "notification_id": contract("Which decision.", type="integer", minimum=1),
            "alert_id": contract("The alert that it is about.", type="integer", minimum=1),
            "event_id": contract("The event that it was decided on.", type="string", minLength=1),
        },
    ),
    DELIVER_TO_CHANNEL: event(
        DELIVER_TO_CHANNEL,
        "1.0",
        "A command: post a notification to a channel of its owner's; one for each try.",
        {
            "channel_delivery_id": contract("Which notification on which channel.", type="integer", minimum=1),
            "channel_id": contract("The channel.", type="integer", minimum=1),
        },
    ),
    SEND_DIGEST_EMAIL: event(
        SEND_DIGEST_EMAIL,
        "1.0",
        "A command: send a weekly digest.",
        {"digest_id": contract("Which digest.", type="integer", minimum=1)},
    ),
}
