"""What a wine cost over time: the best price over its merchants, as steps. Pure; imports no Django.

A merchant's price holds until it names another or withdraws the offer, so each one's last price is carried forward and
the lowest of them is the best. Where nobody offers, a step ends before the next begins. Used by selectors.py and by
whoever explains a target.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Observation:
    """One merchant named one price at one time; None: it offers the wine no longer."""

    at: datetime
    merchant_id: str
    price_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Step:
    """From `at` on, until the next step, this was the best price and this merchant asked it.

    With an `until` it ended then, and nobody offered the wine before the next step, or since.
    """

    at: datetime
    merchant_id: str
    price_usd: Decimal
    until: datetime | None = None


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
        at = max(seen.at, since)
        if seen.price_usd is None:
            asked.pop(seen.merchant_id, None)
        else:
            asked[seen.merchant_id] = seen.price_usd
        lowest = min(asked.values(), default=None)
        if steps and steps[-1].until == at:  # gone and there again at once: never gone
            steps[-1] = replace(steps[-1], until=None)
        last = steps[-1] if steps and steps[-1].until is None else None
        if last and last.price_usd == lowest and asked.get(last.merchant_id) == lowest:
            continue
        if last and last.at == at:
            steps.pop()  # nobody could buy at a price that was replaced at once
        if lowest is not None:
            steps.append(Step(at, min(merchant for merchant, price in asked.items() if price == lowest), lowest))
        elif steps and steps[-1].until is None:
            steps[-1] = replace(steps[-1], until=at)
    return steps


def price_at(steps: Sequence[Step], when: datetime) -> Decimal | None:
    """The best price at that time; None before the first step, and while nobody offered."""
    holding = [step for step in steps if step.at <= when]
    if not holding or (holding[-1].until is not None and holding[-1].until <= when):
        return None
    return holding[-1].price_usd


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
    # A gap ends a stay.
    met = [here for step in steps for here in (step.price_usd <= target, *([] if step.until is None else [False]))]
    return TargetMeaning(
        target=target,
        now=_now(steps),
        low=min(prices, default=None),
        high=max(prices, default=None),
        times_seen=sum(here and not before for before, here in zip([False, *met], met, strict=False)),
    )


def suggested_targets(steps: Sequence[Step]) -> list[Decimal]:
    """Up to three below the price now, highest first: 5 and 10 per cent below it, and the lowest of the steps."""
    now = _now(steps)
    if now is None:
        return []
    low = min(step.price_usd for step in steps)
    below = {_round(now * factor) for factor in (Decimal("0.95"), Decimal("0.90"))} | {low}
    return sorted((price for price in below if 0 < price < now), reverse=True)


def _now(steps: Sequence[Step]) -> Decimal | None:
    return steps[-1].price_usd if steps and steps[-1].until is None else None


def _round(price: Decimal) -> Decimal:
    """Down to what somebody would type: whole dollars, or half ones for cheap bottles."""
    unit = Decimal(1) if price >= 50 else Decimal("0.50")
    return (price // unit * unit).quantize(Decimal("0.01"))
