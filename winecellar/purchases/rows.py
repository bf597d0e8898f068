"""The rows of purchases under way: how they are read with their locks, and written at once. SQL alone, for books.py,
paying.py and mail.py.

Guarantee: the statements go by indexes (jobs.database.by_index says how far that reaches), so their plans may be kept.
"""

from __future__ import annotations

from typing import TypeVar

from django.db.backends.utils import CursorWrapper
from django.db.models import Model

from winecellar.purchases.models import Purchase, StockItem

Row = TypeVar("Row", bound=Model)
# In the order in which everybody locks them; `read` makes models of what it brings.
LOCKING = "SELECT {columns} FROM {table} WHERE id = ANY({ids}) ORDER BY id FOR NO KEY UPDATE"


def lock_sql(model: type[Model], ids: str) -> str:
    """The statement that reads and locks a model's rows. `ids`: SQL for an array of them."""
    columns = ", ".join(field.attname for field in model._meta.concrete_fields)
    return LOCKING.format(columns=columns, table=model._meta.db_table, ids=ids)


def read(model: type[Row], cursor: CursorWrapper) -> list[Row]:
    """Rows that were selected with all columns of their model, in its order."""
    names = [field.attname for field in model._meta.concrete_fields]
    return [model.from_db(cursor.db.alias, names, row) for row in cursor.fetchall()]


LOCK = lock_sql(Purchase, "%s")
# Of those purchases whose bottles may still move.
MOVING = "ARRAY(SELECT item_id FROM purchases_purchase WHERE id = ANY(%s) AND state <> ALL(%s))"
LOCK_STOCK = lock_sql(StockItem, MOVING)
# All of it at once, of rows that are locked: the ORM's statements, one for each table, took most of a worker's time.
# Money that is known already was told twice. Mails that there are already come back with their numbers; what was sent
# is not sent again (mail.py).
WRITE = """
WITH purchase AS (
    UPDATE purchases_purchase SET state = became.state, changed_at = became.changed_at, asked_at = became.asked_at,
        intent_id = became.intent_id, reason = became.reason
    FROM jsonb_to_recordset(%(purchases)s::jsonb) AS became
        (id bigint, state text, changed_at timestamptz, asked_at timestamptz, intent_id text, reason text)
    WHERE purchases_purchase.id = became.id
),
stock AS (
    UPDATE purchases_stockitem SET on_hand = became.on_hand, reserved = became.reserved
    FROM jsonb_to_recordset(%(stock)s::jsonb) AS became (id bigint, on_hand bigint, reserved bigint)
    WHERE purchases_stockitem.id = became.id
),
entry AS (
    INSERT INTO purchases_entry (purchase_id, kind, event, came_from, state, says, by, at)
    SELECT made.purchase, made.kind, made.event, made.came_from, made.state, made.says, made.by, %(now)s
    FROM ROWS FROM (
        jsonb_to_recordset(%(entries)s::jsonb)
            AS (purchase bigint, kind text, event text, came_from text, state text, says text, by text)
    ) WITH ORDINALITY AS made (purchase, kind, event, came_from, state, says, by, place)
    ORDER BY made.place
),
money AS (
    INSERT INTO purchases_money (purchase_id, kind, amount, currency, provider_id, fee, at)
    SELECT made.purchase, made.kind, made.amount, made.currency, made.provider_id, made.fee, %(now)s
    FROM jsonb_to_recordset(%(money)s::jsonb)
        AS made (purchase bigint, kind text, amount numeric, currency text, provider_id text, fee numeric)
    ON CONFLICT DO NOTHING
)
INSERT INTO purchases_purchasemail (purchase_id, kind, state, created_at)
SELECT made.purchase, made.kind, 'queued', %(now)s
FROM jsonb_to_recordset(%(mails)s::jsonb) AS made (purchase bigint, kind text)
ON CONFLICT (purchase_id, kind) DO UPDATE SET kind = EXCLUDED.kind
RETURNING id, purchase_id
"""
