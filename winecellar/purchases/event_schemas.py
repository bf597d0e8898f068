"""The purchases' commands as JSON Schema, in the manner of pricing/event_schemas.py. Pure."""

from pricing.event_schemas import Schema, contract, event
from winecellar.purchases.events import (
    CALL_OFF_PURCHASE,
    CHARGE_PURCHASE,
    CHECK_PAYMENT,
    REFUND_PURCHASE,
    SEND_PURCHASE_EMAIL,
)


def _command(name: str, says: str) -> Schema:
    return event(
        name,
        "1.0",
        f"A command: {says} What it is about is in the purchase's row.",
        {"purchase_id": contract("Which purchase.", type="integer", minimum=1)},
    )


SCHEMAS: dict[str, Schema] = {
    CHARGE_PURCHASE: _command(CHARGE_PURCHASE, "have the payment provider charge for a purchase."),
    CALL_OFF_PURCHASE: _command(CALL_OFF_PURCHASE, "see that a purchase's charge is never made, or learn that it was."),
    REFUND_PURCHASE: _command(REFUND_PURCHASE, "have the payment provider give a purchase's money back."),
    CHECK_PAYMENT: _command(CHECK_PAYMENT, "ask the payment provider how a purchase's payment stands; change nothing."),
    SEND_PURCHASE_EMAIL: event(
        SEND_PURCHASE_EMAIL,
        "1.0",
        "A command: send a mail about a purchase. The mail itself is not in the message.",
        {"purchase_mail_id": contract("Which mail.", type="integer", minimum=1)},
    ),
}
