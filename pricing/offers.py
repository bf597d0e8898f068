"""The offers as feed intake locks, reads and writes them: all wines of a batch in one statement each.

Guarantee: none by itself. Called by services and availability, while they hold the locks of the wines' rows; and by the
feed, which has them locked ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from django.db.backends.utils import CursorWrapper

from jobs.database import run
from jobs.messages import dumps
from pricing.models import Merchant, full_name
from pricing.rules import Standing

LOCK_WINES = """
SELECT id, name, vintage FROM pricing_wine WHERE id = ANY(%s) AND retired_at IS NULL ORDER BY id FOR NO KEY UPDATE
"""
# One JSON parameter: a thousand rows of seven parameters each take the client longer than the server.
UPSERT = """
INSERT INTO pricing_offer (merchant_id, wine_id, price_usd, occurred_at, seen_at, event_id, updated_at,
                           native_price, native_currency, withdrawn_at, tax)
SELECT %(merchant)s, wine_id, price_usd, occurred_at, seen_at, event_id, updated_at,
       native_price, native_currency, withdrawn_at, tax
FROM jsonb_to_recordset(%(offers)s::jsonb) AS offer (
    wine_id text, price_usd numeric, occurred_at timestamptz, seen_at timestamptz, event_id text,
    updated_at timestamptz, native_price numeric, native_currency text, withdrawn_at timestamptz, tax text)
ON CONFLICT (wine_id, merchant_id) DO UPDATE SET
    price_usd = excluded.price_usd, occurred_at = excluded.occurred_at, seen_at = excluded.seen_at,
    event_id = excluded.event_id, updated_at = excluded.updated_at, native_price = excluded.native_price,
    native_currency = excluded.native_currency, withdrawn_at = excluded.withdrawn_at, tax = excluded.tax
"""
COLUMNS = (
    *("price_usd", "occurred_at", "seen_at", "event_id", "updated_at"),
    *("native_price", "native_currency", "withdrawn_at", "tax"),
)  # as the fields of Standing
READ = f"SELECT wine_id, {', '.join(COLUMNS)} FROM pricing_offer WHERE merchant_id = %s AND wine_id = ANY(%s)"  # noqa: S608


class Locked:
    """Wines that are listed and nobody else can lock before the transaction ends, and what a merchant asks for them.

    Both were asked of the server, and are fetched when they are needed.
    """

    def __init__(self, wines: CursorWrapper, offers: CursorWrapper) -> None:
        self._wines, self._offers = wines, offers

    @cached_property
    def names(self) -> dict[str, str]:
        """The wines' names by their ids."""
        return {id_: full_name(name, vintage) for id_, name, vintage in self._wines.fetchall()}

    @cached_property
    def standings(self) -> dict[str, Standing]:
        return {wine_id: Standing(*said) for wine_id, *said in self._offers.fetchall()}


def lock(merchant: Merchant, wine_ids: Iterable[str]) -> Locked:
    """Lock the wines, in one order for everybody, and read the offers: 2 statements.

    From now on nobody else can draw a message id for these wines; the lock also gives the transaction its id, without
    which a claim might overtake it. The offers are read by a statement of their own: it must see what was committed
    while the first one waited for the lock.
    """
    ids = list(set(wine_ids))
    return Locked(run(LOCK_WINES, [ids], keep_plan=False), _asked(merchant, ids))


def read(merchant: Merchant, wine_ids: Iterable[str]) -> dict[str, Standing]:
    """What the merchant asks for these wines now, by wine, or asked before it withdrew them."""
    return {wine_id: Standing(*said) for wine_id, *said in _asked(merchant, list(wine_ids)).fetchall()}


def _asked(merchant: Merchant, wine_ids: list[str]) -> CursorWrapper:
    return run(READ, [merchant.pk, wine_ids], keep_plan=False)


def write(merchant: Merchant, standings: Mapping[str, Standing]) -> None:
    """Make the merchant's offers say this; offers not named stay as they are."""
    offers = [
        {
            "wine_id": wine_id,
            "price_usd": standing.price_usd,
            "occurred_at": standing.occurred_at.isoformat(),
            "seen_at": standing.seen_at.isoformat(),
            "event_id": standing.event_id,
            "updated_at": standing.updated_at.isoformat(),
            "native_price": standing.native_price,
            "native_currency": standing.native_currency,
            "withdrawn_at": standing.withdrawn_at.isoformat() if standing.withdrawn_at else None,
            "tax": standing.tax,
        }
        for wine_id, standing in standings.items()
    ]
    run(UPSERT, {"merchant": merchant.pk, "offers": dumps(offers)})
