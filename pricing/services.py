"""Price intake: what a merchant observed becomes offers, events and held prices, in one transaction.

Guarantee: offers, messages and held prices of one call are committed together or not at all, and for one wine the
order of message ids is the order of commits. Called by the feeds, by listings and by the release of held prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db import transaction

from jobs import outbox
from jobs.messages import NewMessage, new_event_id
from pricing import holding, offers, rates, rules
from pricing.contract import PRICE_CURRENCY
from pricing.events import (
    LATE_PRICE_OBSERVED,
    OFFER_RETURNED,
    OFFER_WITHDRAWN,
    PRICE_CHANGED,
    AvailabilityChanged,
    PriceChanged,
)
from pricing.holding import Hold
from pricing.models import HeldPrice, Merchant
from pricing.offers import Locked
from pricing.rules import Observation, Standing, Verdict

WITHDRAWN_BY_MERCHANT = "no longer offered"  # why, in the event, for people


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one observation; `event_id` when it was published: as the price now, as late, as a return or as a
    withdrawal."""

    wine_id: str
    verdict: Verdict
    event_id: str | None = None


class UnknownWineError(Exception):
    """An observation names a wine that we do not list, or no longer; `index` says which observation."""

    def __init__(self, *, index: int, wine_id: str) -> None:
        super().__init__(f"observation {index}: wine {wine_id} is not listed")
        self.index = index
        self.wine_id = wine_id


def record_observations(
    *,
    merchant: Merchant,
    observations: Sequence[Observation],
    attributes: Mapping[str, str],
    now: datetime,
    trusted: bool = False,
    own_attributes: Sequence[Mapping[str, str]] = (),
    locked: Locked | None = None,
) -> list[Outcome]:
    """Record what a merchant observed; the outcomes are in the order of the observations.

    `attributes` go with every event that this makes, `own_attributes[i]` with that of observation i. The wines may have
    been `locked` ahead, these or more.

    All or nothing: raises UnknownWineError before anything is written. One wine may come several times and is
    then judged in the order of `occurred_at`. Other money is converted by the rate of its day; what has none is held.
    `trusted`: a person vouches for the prices, so that no jump is held, and the last rate will do, however old.
    """
    with transaction.atomic(savepoint=False):
        locked = locked or offers.lock(merchant, (observation.wine_id for observation in observations))
        _refuse_unknown(observations, locked)
        observations = rates.convert(observations, any_age=trusted)
        intake = _Intake(
            merchant=merchant,
            names=locked.names,
            standings=locked.standings,
            attributes=attributes,
            now=now,
            hold_factor=None if trusted else settings.FEED_HOLD_FACTOR,
        )
        outcomes: dict[int, Outcome] = {}
        for index in sorted(range(len(observations)), key=lambda index: observations[index].occurred_at):
            own = own_attributes[index] if own_attributes else {}
            outcomes[index] = intake.take(observations[index], own)
        intake.write()
    return [outcomes[index] for index in range(len(observations))]


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What recording an observation comes to, and would write."""

    outcome: Outcome
    standing: Standing
    messages: Sequence[NewMessage]


def foresee(
    *,
    merchant: Merchant,
    observation: Observation,
    wine_name: str,
    standing: Standing | None,
    attributes: Mapping[str, str],
    now: datetime,
) -> Foreseen | None:
    """Judge an observation as `record_observations` would if the wine and the offer are as they are said to be.

    Writes nothing; whoever does must find them so, under the wine's lock. None where more, or less, is to be written
    than the offer and its events.
    """
    wine_id = observation.wine_id
    intake = _Intake(
        merchant=merchant,
        names={wine_id: wine_name},
        standings={wine_id: standing} if standing else {},
        attributes=attributes,
        now=now,
        hold_factor=settings.FEED_HOLD_FACTOR,
    )
    [converted] = rates.convert([observation])
    outcome = intake.take(converted, {})
    if intake.holds or not intake.changed:
        return None
    return Foreseen(outcome, intake.standings[wine_id], intake.messages)


def _refuse_unknown(observations: Sequence[Observation], locked: Locked) -> None:
    for index, observation in enumerate(observations):
        if observation.wine_id not in locked.names:
            raise UnknownWineError(index=index, wine_id=observation.wine_id)


@dataclass
class _Intake:
    """The observations of one call: judged one by one, written all at once."""

    merchant: Merchant
    names: Mapping[str, str]
    standings: dict[str, Standing]
    attributes: Mapping[str, str]
    now: datetime
    hold_factor: Decimal | None
    changed: set[str] = field(default_factory=set)
    messages: list[NewMessage] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)

    def take(self, observation: Observation, own_attributes: Mapping[str, str]) -> Outcome:
        wine_id = observation.wine_id
        standing = self.standings.get(wine_id)
        attributes = {**self.attributes, **own_attributes}
        if not observation.tax and self.merchant.tax:
            observation = replace(observation, tax=self.merchant.tax)
        verdict = rules.judge(observation, standing, hold_factor=self.hold_factor)
        event_id = None
        if observation.withdrawn:
            if standing and verdict is not Verdict.STALE:
                event_id = self._withdraw(observation, standing, attributes)
        elif verdict is Verdict.APPLIED:
            event_id = self._announce(PRICE_CHANGED, observation, standing, attributes)
            if standing and standing.withdrawn_at:
                self._announce_return(observation, standing, attributes, price_event_id=event_id)
            self._stand(wine_id, rules.applied(observation, event_id=event_id, now=self.now))
        elif verdict is Verdict.STALE:
            event_id = self._announce(LATE_PRICE_OBSERVED, observation, standing, attributes)
        elif verdict is Verdict.NO_RATE:
            self.holds.append(Hold(HeldPrice.Cause.NO_RATE, observation, standing, attributes))
        elif standing and verdict is Verdict.RETURNED:
            event_id = self._announce_return(observation, standing, attributes)
            self._stand(wine_id, rules.returned(standing, observation, event_id=event_id, now=self.now))
        elif standing and verdict is Verdict.UNCHANGED:
            self._stand(wine_id, rules.seen_again(standing, observation))
        elif standing and verdict is Verdict.HELD:
            self.holds.append(Hold(HeldPrice.Cause.JUMP, observation, standing, attributes))
        return Outcome(wine_id, verdict, event_id)

    def _stand(self, wine_id: str, standing: Standing) -> None:
        if standing != self.standings.get(wine_id):
            self.standings[wine_id] = standing
            self.changed.add(wine_id)

    def _announce(
        self, type_: str, observation: Observation, standing: Standing | None, attributes: Mapping[str, str]
    ) -> str:
        assert observation.price_usd is not None  # what has no rate is held
        event = PriceChanged(
            event_id=new_event_id(),
            wine_id=observation.wine_id,
            wine_name=self.names[observation.wine_id],
            merchant_id=self.merchant.pk,
            old_price_usd=standing.price_usd if standing else None,
            new_price_usd=observation.price_usd,
            currency=PRICE_CURRENCY,
            occurred_at=observation.occurred_at,
            native_price=observation.native_price,
            native_currency=observation.native_currency,
        )
        self.messages.append(event.as_message(type_, attributes))
        return event.event_id

    def _announce_return(
        self, observation: Observation, standing: Standing, attributes: Mapping[str, str], *, price_event_id: str = ""
    ) -> str:
        """At the price it had, or behind the event of another one."""
        new_price = observation.price_usd if price_event_id else standing.price_usd
        assert new_price is not None  # a price that was announced is in dollars
        event = AvailabilityChanged(
            event_id=new_event_id(),
            type=OFFER_RETURNED,
            wine_id=observation.wine_id,
            wine_name=self.names[observation.wine_id],
            merchant_id=self.merchant.pk,
            price_usd=new_price,
            occurred_at=observation.occurred_at,
            price_event_id=price_event_id,
        )
        self.messages.append(event.as_message(attributes))
        return event.event_id

    def _withdraw(self, observation: Observation, standing: Standing, attributes: Mapping[str, str]) -> str | None:
        """As availability.withdraw does; said again it only confirms, and the event's id is None."""
        self._stand(observation.wine_id, rules.withdrawn(standing, at=observation.occurred_at, now=self.now))
        if standing.withdrawn_at:
            return None
        event = AvailabilityChanged(
            event_id=new_event_id(),
            type=OFFER_WITHDRAWN,
            wine_id=observation.wine_id,
            wine_name=self.names[observation.wine_id],
            merchant_id=self.merchant.pk,
            price_usd=standing.price_usd,
            occurred_at=observation.occurred_at,
            why=WITHDRAWN_BY_MERCHANT,
        )
        self.messages.append(event.as_message(attributes))
        return event.event_id

    def write(self) -> None:
        if self.changed:
            offers.write(self.merchant, {wine_id: self.standings[wine_id] for wine_id in self.changed})
        if self.holds:
            holding.write(self.merchant, self.holds, factor=self.hold_factor)
        outbox.publish(self.messages)
