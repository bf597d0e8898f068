"""What a wine cost over time: the best price over its merchants, as steps. Pure; imports no Django.

A merchant's price holds until it names another, so each one's last price is carried forward and the lowest of them
is the best. Used by selectors.py and by whoever explains a target.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Observation:
    """One merchant named one price at one time."""

    at: datetime
    merchant_id: str
    price_usd: Decimal


@dataclass(frozen=True, slots=True)
class Step:
    """From `at` on, until the next step, this was the best price and this merchant asked it."""

    at: datetime
    merchant_id: str
    price_usd: Decimal


def best_price_steps(observations: Iterable[Observation], *, since: datetime, until: datetime) -> list[Step]:
    """The best price from `since` to `until`, one step for each change of price or merchant.

    What was observed before `since` counts as of `since`; what comes after `until` does not count. Of two observations
    of one merchant at one time the later in the order given holds. Of two merchants at one price the first one stays.
    """
    asked: dict[str, Decimal] = {}
    steps: list[Step] = []
    for seen in sorted(observations, key=lambda observation: observation.at):
        if seen.at > until:
            break
        asked[seen.merchant_id] = seen.price_usd
        lowest = min(asked.values())
        last = steps[-1] if steps else None
        if last and last.price_usd == lowest and asked[last.merchant_id] == lowest:
            continue
        merchant_id = min(merchant for merchant, price in asked.items() if price == lowest)
        step = Step(max(seen.at, since), merchant_id, lowest)
        if last and last.at == step.at:
            steps[-1] = step  # nobody could buy at a price that was replaced at once
        else:
            steps.append(step)
    return steps


def price_at(steps: Sequence[Step], when: datetime) -> Decimal | None:
    """The best price at that time; None before the first step."""
    holding = [step for step in steps if step.at <= when]
    return holding[-1].price_usd if holding else None


@dataclass(frozen=True, slots=True)
class TargetMeaning:
    """A target beside what the wine cost, in USD: what somebody who sets it should know. `now` may be unknown."""

    target: Decimal
    now: Decimal | None
    low: Decimal | None
    high: Decimal | None
    times_seen: int

    @property
    def already_met(self) -> bool:
        return self.now is not None and self.now <= self.target

    @property
    def percent_below_now(self) -> Decimal | None:
        """How far the price has to fall, in per cent of today's; zero or less when it is there already."""
        return None if self.now is None else (self.now - self.target) / self.now * 100


def meaning_of_target(steps: Sequence[Step], target: Decimal) -> TargetMeaning:
    """Explain `target` by the steps. `times_seen` counts each stay at or below it once, the present one included."""
    prices = [step.price_usd for step in steps]
    met = [price <= target for price in prices]
    return TargetMeaning(
        target=target,
        now=prices[-1] if prices else None,
        low=min(prices, default=None),
        high=max(prices, default=None),
        times_seen=sum(here and not before for before, here in zip([False, *met], met, strict=False)),
    )


def suggested_targets(steps: Sequence[Step]) -> list[Decimal]:
    """Up to three below the price now, highest first: 5 and 10 per cent below it, and the lowest of the steps."""
    if not steps:
        return []
    now, low = steps[-1].price_usd, min(step.price_usd for step in steps)
    below = {_round(now * factor) for factor in (Decimal("0.95"), Decimal("0.90"))} | {low}
    return sorted((price for price in below if 0 < price < now), reverse=True)


def _round(price: Decimal) -> Decimal:
    """Down to what somebody would type: whole dollars, or half ones for cheap bottles."""
    unit = Decimal(1) if price >= 50 else Decimal("0.50")
    return (price // unit * unit).quantize(Decimal("0.01"))
