"""From deliveries to the answer: what is new is recorded in one call, what came before is answered as it was.

Guarantee: all deliveries of a request are taken, with their stored answers, in one transaction, or none is. Called by
the feed's view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from jobs import tracing
from pricing import offers, raw_bodies
from pricing.feeds import answers, single
from pricing.feeds.answers import Answer, Unit
from pricing.feeds.canonical import Delivery
from pricing.feeds.errors import FeedError
from pricing.models import Merchant
from pricing.raw_bodies import Received
from pricing.rules import Verdict
from pricing.services import Outcome, UnknownWineError, foresee, record_observations

log = structlog.get_logger(__name__)

TRACE = (tracing.PARENT, tracing.STATE)
TAKEN = frozenset({Verdict.APPLIED, Verdict.RETURNED, Verdict.WITHDRAWN})
HELD = {Verdict.HELD: "suspect", Verdict.NO_RATE: "no rate"}  # and why
# What the sender is told of each verdict that is not TAKEN.
REASONS = {verdict: (Verdict.HELD if verdict in HELD else verdict).value for verdict in Verdict if verdict not in TAKEN}


def take(
    deliveries: Sequence[Delivery],
    *,
    merchant: Merchant,
    received: Received,
    attributes: Mapping[str, str],
    now: datetime,
    ahead: single.Ahead | None = None,
) -> Answer:
    """Take what a request brings. `attributes` go with every event; `ahead` is what was looked up when it came. Raises
    FeedError, and what answers.once raises.

    The body is kept with what was made of it, unless it only brings what came before.
    """

    work = _Work(deliveries, merchant, received, attributes, now)
    meanings = [received.body if each.meaning is None else each.meaning for each in deliveries]
    units = [Unit(each.key, meaning, each.field) for each, meaning in zip(deliveries, meanings, strict=True)]
    if len(units) == len(deliveries[0].observations) == 1 and (answer := work.at_once(units[0], ahead)):
        return answer
    return _together(answers.once(merchant=merchant, units=units, ahead=work.ask, work=work.do))


@dataclass
class _Work:
    """What answers.once has done once: the body is kept, and the wines are locked, before it is known what is new."""

    deliveries: Sequence[Delivery]
    merchant: Merchant
    received: Received
    attributes: Mapping[str, str]
    now: datetime

    def at_once(self, unit: Unit, ahead: single.Ahead | None) -> Answer | None:
        """Record a single price, unless something about it is unusual, or was changed by somebody else meanwhile."""
        [delivery] = self.deliveries
        [observation] = delivery.observations
        looked = single.look(merchant=self.merchant, wine_id=observation.wine_id, key=unit.key, ahead=ahead)
        if looked is None:
            return None
        foreseen = foresee(
            merchant=self.merchant,
            observation=observation,
            wine_name=looked.wine_name,
            standing=looked.standing,
            attributes={**self.attributes, **raw_bodies.attribute(looked.raw_body), **_own(delivery)},
            now=self.now,
        )
        if foreseen is None:
            return None
        answer = _render([foreseen.outcome], delivery.ignored_fields)
        written = single.write(
            looked,
            foreseen,
            merchant=self.merchant,
            unit=unit,
            answer=answer,
            received=self.received,
            now=self.now,
        )
        return answer if written else None

    def ask(self) -> None:
        self.kept = raw_bodies.keep(merchant=self.merchant, received=self.received, now=self.now)
        wine_ids = (seen.wine_id for delivery in self.deliveries for seen in delivery.observations)
        self.locked = offers.lock(self.merchant, wine_ids)

    def do(self, new: Sequence[int]) -> list[Answer]:
        """Record all observations in one call, and answer for each delivery by itself."""
        deliveries = [self.deliveries[index] for index in new]
        where = [path for delivery in deliveries for path in delivery.where]
        try:
            outcomes = record_observations(
                merchant=self.merchant,
                observations=[seen for delivery in deliveries for seen in delivery.observations],
                attributes={**self.attributes, **self.kept()},
                own_attributes=[_own(delivery) for delivery in deliveries for _ in delivery.observations],
                now=self.now,
                locked=self.locked,
            )
        except UnknownWineError as error:
            log.info("feed.unknown_wine", wine_id=error.wine_id)
            field = f"{where[error.index]}wine_id"
            raise FeedError(422, "unknown_wine", "We do not list this wine, or no longer.", field=field) from None
        return list(_rendered(deliveries, outcomes))


def _own(delivery: Delivery) -> dict[str, str]:
    """What its sender said of this event alone. The request's own trace goes with every event (jobs/tracing.py)."""
    attributes = {name: value for name, value in delivery.attributes.items() if name not in TRACE}
    if delivery.delivery_id is not None:
        attributes["merchant_delivery_id"] = delivery.delivery_id
    return {**attributes, **tracing.sent(*(delivery.attributes.get(name) for name in TRACE))}


def _rendered(deliveries: Sequence[Delivery], outcomes: list[Outcome]) -> Iterator[Answer]:
    begin = 0
    for delivery in deliveries:
        end = begin + len(delivery.observations)
        yield _render(outcomes[begin:end], delivery.ignored_fields)
        begin = end


def _together(parts: list[Answer]) -> Answer:
    """One answer to a request that brought several deliveries; a duplicate only if each of them was."""
    if len(parts) == 1:
        return parts[0]
    return {
        "accepted": sum(part["accepted"] for part in parts),
        "duplicate": all(part["duplicate"] for part in parts),
        "results": [result for part in parts for result in part["results"]],
        "event_ids": [event_id for part in parts for event_id in part["event_ids"]],
        "ignored_fields": sum(part["ignored_fields"] for part in parts),
    }


def _render(outcomes: list[Outcome], ignored_fields: int) -> Answer:
    return {
        "accepted": len(outcomes),
        "duplicate": False,
        "results": [result(outcome) for outcome in outcomes],
        "event_ids": [outcome.event_id for outcome in outcomes if outcome.event_id],
        "ignored_fields": ignored_fields,
    }


def result(outcome: Outcome) -> dict[str, Any]:
    """What became of one observation, for the sender."""
    told: dict[str, Any] = {"wine_id": outcome.wine_id, "applied": outcome.verdict in TAKEN}
    if outcome.verdict in REASONS:
        told["reason"] = REASONS[outcome.verdict]
    if outcome.verdict in HELD:
        told["held"] = HELD[outcome.verdict]
    if outcome.verdict is Verdict.RETURNED:
        told["returned"] = True
    if outcome.verdict is Verdict.WITHDRAWN:
        told["withdrawn"] = True
    if outcome.event_id:
        told["event_id"] = outcome.event_id
    return told
