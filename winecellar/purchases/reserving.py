"""The two statements of buying, which a shop's busy hour is made of: look under the lock, and reserve.

Guarantee: what `look` says of the stock is so until the transaction ends. What it says of the buyer is as of the moment
it began: the same form at the same moment is caught by the unique key (buyer, token). Called by services.buy alone, for
three round trips in all: look; reserve, with the command that has it charged; commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from jobs.database import by_index, pipelined, run
from pricing.models import full_name
from winecellar.purchases.models import Purchase
from winecellar.purchases.rules import RESERVES, State

LOOK = """
SELECT item.on_hand - item.reserved, item.price, item.currency, merchant.name, wine.name, wine.vintage,
    wine.retired_at IS NOT NULL, coalesce(card.customer_id, ''), coalesce(card.method_id, ''), coalesce(card.label, ''),
    (SELECT id FROM purchases_purchase WHERE buyer_id = %(buyer)s AND token = %(token)s),
    (SELECT count(*) FROM purchases_purchase WHERE buyer_id = %(buyer)s AND state = ANY(%(reserves)s)),
    EXISTS (SELECT FROM account_emailaddress WHERE user_id = %(buyer)s AND "primary" AND verified),
    nextval('purchases_purchase_id_seq')
FROM purchases_stockitem item
JOIN pricing_wine wine ON wine.id = item.wine_id
JOIN pricing_merchant merchant ON merchant.id = item.merchant_id
LEFT JOIN purchases_card card ON card.user_id = %(buyer)s
WHERE item.id = %(item)s
FOR NO KEY UPDATE OF item
"""
# The columns are the model's own names.
COLUMNS = [field.attname for field in Purchase._meta.concrete_fields]
RESERVE = """
WITH reserved AS (UPDATE purchases_stockitem SET reserved = reserved + %(quantity)s WHERE id = %(item_id)s),
made AS (INSERT INTO purchases_purchase ({columns}) VALUES ({values}))
INSERT INTO purchases_entry (purchase_id, kind, event, came_from, state, says, by, at)
VALUES (%(id)s, 'begun', '', '', %(state)s, '', '', %(created_at)s)
"""
RESERVE = RESERVE.format(columns=", ".join(COLUMNS), values=", ".join(f"%({name})s" for name in COLUMNS))


@dataclass(frozen=True)
class Looked:
    """A stock item, locked, and what matters about who buys. `made`: the purchase of this form, if there is one.
    `number`: the next purchase's, drawn with the look so that what is written next need not wait to hear it."""

    free: int
    price: Decimal
    currency: str
    merchant_name: str
    wine: str
    vintage: int | None
    retired: bool
    customer_id: str
    method_id: str
    card_label: str
    made: int | None
    under_way: int
    confirmed: bool
    number: int

    @property
    def wine_name(self) -> str:
        return full_name(self.wine, self.vintage)


def look(*, item_id: int, buyer_id: int, token: str) -> Looked | None:
    """None: there is no such item."""
    reserves = sorted(state.value for state in RESERVES)
    given = {"item": item_id, "buyer": buyer_id, "token": token, "reserves": reserves}
    with pipelined(), by_index():
        looking = run(LOOK, given)
    row = looking.fetchone()
    return Looked(*row) if row else None


def reserve(
    looked: Looked, *, item_id: int, buyer_id: int, quantity: int, token: str, until: datetime, now: datetime
) -> Purchase:
    """Write the reservation. Where the same form was sent at the same moment it, or in a pipeline the pipeline's end,
    raises IntegrityError."""
    purchase = Purchase(
        id=looked.number,
        buyer_id=buyer_id,
        token=token,
        item_id=item_id,
        merchant_name=looked.merchant_name,
        wine_name=looked.wine_name,
        quantity=quantity,
        unit_price=looked.price,
        amount=looked.price * quantity,
        currency=looked.currency,
        state=State.CHARGING,
        reserved_until=until,
        created_at=now,
        changed_at=now,
        customer_id=looked.customer_id,
        method_id=looked.method_id,
        card_label=looked.card_label,
        attempts=0,
    )
    run(RESERVE, {column: getattr(purchase, column) for column in COLUMNS})
    purchase._state.adding = False
    return purchase
