"""Writing down the prices that cannot stand unasked. Called by services, while it holds the locks of the wines' rows.

Guarantee: what a feed repeats every night is held once, and a price without a rate is held each time it comes to be,
so that all of them, released in their order, leave the right one standing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from jobs import tracing
from pricing.models import HeldPrice, Merchant
from pricing.rules import Observation, Standing

NO_RATE_REASON = "No exchange rate of {currency} is known for that day. It is released when the rate is loaded."


@dataclass(frozen=True, slots=True)
class Hold:
    """One price to be held, and what it would have replaced."""

    cause: HeldPrice.Cause
    observation: Observation
    standing: Standing | None
    attributes: Mapping[str, str]


def write(merchant: Merchant, holds: Sequence[Hold], *, factor: Decimal | None) -> None:
    """Keep what is not held already; `factor` is the one that was exceeded."""
    wine_ids = {hold.observation.wine_id for hold in holds}
    known = list(HeldPrice.objects.filter(merchant=merchant, wine__in=wine_ids).order_by("occurred_at", "id"))
    jumps = {_identity(held) for held in known if held.cause == HeldPrice.Cause.JUMP}
    latest = {held.wine_id: held for held in known if held.cause == HeldPrice.Cause.NO_RATE}
    fresh: list[HeldPrice] = []
    again: list[HeldPrice] = []
    for hold in holds:
        held = _row(merchant, hold, factor)
        last = latest.get(held.wine_id)
        if hold.cause == HeldPrice.Cause.JUMP:
            if _identity(held) not in jumps:
                jumps.add(_identity(held))
                fresh.append(held)
        elif last and _identity(last) == _identity(held) and held.occurred_at >= last.occurred_at:
            last.seen_at = max(held.occurred_at, last.seen_at or held.occurred_at)
            again.append(last)
        else:
            fresh.append(held)
            if last is None or held.occurred_at >= last.occurred_at:
                latest[held.wine_id] = held
    HeldPrice.objects.bulk_create(fresh)
    HeldPrice.objects.bulk_update(_unsaved_apart(again), ["seen_at"])


def _unsaved_apart(rows: Iterable[HeldPrice]) -> list[HeldPrice]:
    return list({row.pk: row for row in rows}.values())


def _row(merchant: Merchant, hold: Hold, factor: Decimal | None) -> HeldPrice:
    seen = hold.observation
    if hold.cause == HeldPrice.Cause.NO_RATE:
        reason = NO_RATE_REASON.format(currency=seen.native_currency)
    else:
        reason = f"More than {factor} times the last price, or less than a {factor}th of it."
    return HeldPrice(
        merchant=merchant,
        wine_id=seen.wine_id,
        cause=hold.cause,
        price_usd=seen.price_usd,
        native_price=seen.native_price,
        native_currency=seen.native_currency,
        last_price_usd=hold.standing.price_usd if hold.standing else None,
        tax=seen.tax,
        occurred_at=seen.occurred_at,
        reason=reason,
        attributes=tracing.with_trace(hold.attributes),  # whoever releases it, it came by this request
    )


def _identity(held: HeldPrice) -> tuple[str, str, Decimal | None]:
    return held.wine_id, held.native_currency, held.native_price if held.native_currency else held.price_usd
