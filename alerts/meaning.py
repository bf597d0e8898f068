"""What a wish means beside what the wine has cost: a sentence for the form, and a target in dollars for the chart.

Reads only; 4 queries where a price is considered. Called by the wine's page while somebody fills in the form.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from decimal import ROUND_HALF_UP, Decimal

from django.db.models import Min

from alerts.amounts import Amounts
from alerts.models import Alert
from alerts.money import NO_BREAK, said
from alerts.services import Wish
from pricing.models import ExchangeRate, PriceHistory
from pricing.selectors import WinePrices, best_offer, wine_prices
from pricing.timeline import meaning_of_target

YEAR = timedelta(days=365)
CENT = Decimal("0.01")
TIMES = {1: "once", 2: "twice"}


@dataclass(frozen=True, slots=True)
class Meaning:
    """`heading` names the target, `sentence` says what it comes to."""

    heading: str
    sentence: str
    target_usd: Decimal | None = None


def known_currencies() -> list[str]:
    """Those that the ECB published on the last day that we have, dollars among them: 1 query."""
    newest = ExchangeRate.objects.order_by("-day").values("day")[:1]
    return list(ExchangeRate.objects.filter(day=newest).values_list("currency", flat=True))


def meaning_of(wish: Wish, wine_id: str, prices: WinePrices) -> Meaning:
    merchant_id = wish.merchant.pk if wish.merchant else None
    offer = best_offer(prices.offers, wine_id=wine_id, merchant_id=merchant_id)
    seller = prices.merchant_names.get(merchant_id, merchant_id) if merchant_id else ""
    if wish.kind == Alert.Kind.BACK:
        now = f"{seller or 'Somebody'} offers it now: you hear when it has gone and is back."
        return Meaning("Back in stock:", now if offer else "Nobody offers it now: you hear when somebody does.")
    if wish.kind == Alert.Kind.LOW:
        return _low(wish, wine_id, prices, merchant_id)
    if offer is None and wish.kind == Alert.Kind.PERCENT:
        return Meaning("No price yet:", "nobody offers it now, so there is no price to be below.")
    if offer is None:
        gone = f"{seller} does not offer it now" if seller else "Nobody offers it now"
        return Meaning(
            said(wish.target or CENT, wish.currency),
            f"{gone}; you will be told when somebody does at this price or less.",
        )
    day = offer.occurred_at.astimezone(UTC).date()
    amounts = Amounts([wish.currency], [day])
    price = amounts.of(wish.currency, offer.price_usd, day, offer.native_price, offer.native_currency)
    if price is None:
        return Meaning(wish.currency, "No exchange rate of it is known. Choose another currency.")
    target = wish.target
    if wish.kind == Alert.Kind.PERCENT or target is None:
        target = (price * (1 - (wish.percent or Decimal(0)) / 100)).quantize(CENT, ROUND_HALF_UP)
    usd = (target * offer.price_usd / price).quantize(CENT, ROUND_HALF_UP)
    return Meaning(
        said(target, wish.currency), _beside(usd, target >= price, prices, wine_id, merchant_id, seller), usd
    )


def _beside(
    usd: Decimal, is_met: bool, prices: WinePrices, wine_id: str, merchant_id: str | None, seller: str | None
) -> str:
    """“12 % below today; seen 3 times in a year”, “…; below the lowest ever seen”, “already below: told once”."""
    if is_met:
        return "The price is already at or below it: you will be told once."
    year = wine_prices(wine_id, now=prices.until, period=YEAR)
    meaning = meaning_of_target(year.steps(merchant_id=merchant_id), usd)
    part = meaning.percent_below_now or Decimal(0)
    whole = part.quantize(Decimal(1), ROUND_HALF_UP)
    fall = f"{whole}{NO_BREAK}%" if whole else f"under 1{NO_BREAK}%"
    today = f"{fall} below today" + (f" at {seller}" if seller else "")
    if meaning.times_seen:
        return f"{today}; seen {TIMES.get(meaning.times_seen, f'{meaning.times_seen} times')} in a year."
    low = _lowest_ever(wine_id, merchant_id)
    return f"{today}; " + ("below the lowest ever seen." if low is None or usd < low else "not seen in a year.")


def _low(wish: Wish, wine_id: str, prices: WinePrices, merchant_id: str | None) -> Meaning:
    heading = "A new low ever:" if wish.low_days is None else f"A new low of {wish.low_days} days:"
    if wish.low_days is None:
        low = _lowest_ever(wine_id, merchant_id)
    else:
        window = wine_prices(wine_id, now=prices.until, period=timedelta(days=wish.low_days))
        low = min((step.price_usd for step in window.steps(merchant_id=merchant_id)), default=None)
    told = f"the lowest so far is {said(low, 'USD')}; you hear of less." if low else "no price is known of that time."
    return Meaning(heading, told)


def _lowest_ever(wine_id: str, merchant_id: str | None) -> Decimal | None:
    rows = PriceHistory.objects.filter(wine_id=wine_id, late=False)
    if merchant_id:
        rows = rows.filter(merchant_id=merchant_id)
    low: Decimal | None = rows.aggregate(low=Min("price_usd"))["low"]
    return low
