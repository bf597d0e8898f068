"""The accounts' event and command as JSON Schema, in the manner of pricing/event_schemas.py. Pure."""

from pricing.event_schemas import Schema, contract, event
from winecellar.accounts.events import ADDRESS_CONFIRMED, SEND_ACCOUNT_EMAIL

SCHEMAS: dict[str, Schema] = {
    ADDRESS_CONFIRMED: event(
        ADDRESS_CONFIRMED,
        "1.0",
        "A person's address is theirs: a new one, or the first.",
        {"user_id": contract("Whose.", type="integer", minimum=1)},
    ),
    SEND_ACCOUNT_EMAIL: event(
        SEND_ACCOUNT_EMAIL,
        "1.0",
        "A command: send a mail about an account. The mail itself is not in the message.",
        {"account_mail_id": contract("Which mail.", type="integer", minimum=1)},
    ),
}
