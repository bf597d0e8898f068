"""Price intake: what a merchant observed becomes offers, events and held prices, in one transaction.

Guarantee: offers, messages and held prices of one call are committed together or not at all, and for one wine the
order of message ids is the order of commits. Called by the feed's view and by the release of a held price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db import connection, transaction

from jobs import outbox
from jobs.messages import NewMessage, new_event_id
from pricing import offers, rules
from pricing.contract import PRICE_CURRENCY
from pricing.events import LATE_PRICE_OBSERVED, PRICE_CHANGED, PriceChanged
from pricing.models import HeldPrice, Merchant, Wine
from pricing.rules import Observation, Standing, Verdict

# By SQL, since for a single price Django takes longer to write it than Postgres to run it.
LOCK_WINES = """
SELECT id, name, vintage FROM pricing_wine WHERE id = ANY(%s) AND retired_at IS NULL ORDER BY id FOR NO KEY UPDATE
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one observation; `event_id` when it was published, as the price now or as a late one."""

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
) -> list[Outcome]:
    """Record what a merchant observed; the outcomes are in the order of the observations.

    `attributes` go with every event that this makes, `own_attributes[i]` with that of observation i.

    All or nothing: raises UnknownWineError before anything is written. One wine may come several times and is
    then judged in the order of `occurred_at`. `trusted`: a person vouches for the prices, so that none is held.
    """
    with transaction.atomic(savepoint=False):
        # First of all, and in one order for everybody. Until commit nobody else can draw a message id for these
        # wines; the lock also gives the transaction its id, without which a claim might overtake it.
        wines = _lock_wines(observations)
        # A statement of its own: it must see what was committed while we waited for the lock.
        standings = offers.read(merchant, wines)
        intake = _Intake(
            merchant=merchant,
            wines=wines,
            standings=standings,
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


def _lock_wines(observations: Sequence[Observation]) -> dict[str, Wine]:
    with connection.cursor() as cursor:
        cursor.execute(LOCK_WINES, [list({observation.wine_id for observation in observations})])
        wines = {row[0]: Wine.from_db(connection.alias, ["id", "name", "vintage"], row) for row in cursor.fetchall()}
    for index, observation in enumerate(observations):
        if observation.wine_id not in wines:
            raise UnknownWineError(index=index, wine_id=observation.wine_id)
    return wines


@dataclass
class _Intake:
    """The observations of one call: judged one by one, written all at once."""

    merchant: Merchant
    wines: Mapping[str, Wine]
    standings: dict[str, Standing]
    attributes: Mapping[str, str]
    now: datetime
    hold_factor: Decimal | None
    changed: set[str] = field(default_factory=set)
    messages: list[NewMessage] = field(default_factory=list)
    held: list[HeldPrice] = field(default_factory=list)

    def take(self, observation: Observation, own_attributes: Mapping[str, str]) -> Outcome:
        wine_id = observation.wine_id
        standing = self.standings.get(wine_id)
        verdict = rules.judge(observation, standing, hold_factor=self.hold_factor)
        event_id = None
        if verdict is Verdict.APPLIED:
            event_id = self._announce(PRICE_CHANGED, observation, standing, own_attributes)
            self._stand(wine_id, rules.applied(observation, event_id=event_id, now=self.now))
        elif verdict is Verdict.STALE:
            event_id = self._announce(LATE_PRICE_OBSERVED, observation, standing, own_attributes)
        elif standing and verdict is Verdict.UNCHANGED:
            self._stand(wine_id, rules.seen_again(standing, observation))
        elif standing and verdict is Verdict.HELD:
            self._hold(observation, standing)
        return Outcome(wine_id, verdict, event_id)

    def _stand(self, wine_id: str, standing: Standing) -> None:
        if standing != self.standings.get(wine_id):
            self.standings[wine_id] = standing
            self.changed.add(wine_id)

    def _announce(
        self, type_: str, observation: Observation, standing: Standing | None, own_attributes: Mapping[str, str]
    ) -> str:
        event = PriceChanged(
            event_id=new_event_id(),
            wine_id=observation.wine_id,
            wine_name=self.wines[observation.wine_id].full_name,
            merchant_id=self.merchant.pk,
            old_price_usd=standing.price_usd if standing else None,
            new_price_usd=observation.price_usd,
            currency=PRICE_CURRENCY,
            occurred_at=observation.occurred_at,
        )
        self.messages.append(event.as_message(type_, {**self.attributes, **own_attributes}))
        return event.event_id

    def _hold(self, observation: Observation, standing: Standing) -> None:
        self.held.append(
            HeldPrice(
                merchant=self.merchant,
                wine=self.wines[observation.wine_id],
                price_usd=observation.price_usd,
                last_price_usd=standing.price_usd,
                occurred_at=observation.occurred_at,
                reason=f"More than {self.hold_factor} times the last price, or less than a {self.hold_factor}th of it.",
            )
        )

    def write(self) -> None:
        if self.changed:
            offers.write(self.merchant, {wine_id: self.standings[wine_id] for wine_id in self.changed})
        if self.held:
            self._write_held()
        outbox.publish(self.messages)

    def _write_held(self) -> None:
        """A feed repeats its prices every night; a person needs to look at each only once."""
        wine_ids = [price.wine_id for price in self.held]
        known = set(
            HeldPrice.objects.filter(merchant=self.merchant, wine__in=wine_ids).values_list("wine_id", "price_usd")
        )
        fresh = {(price.wine_id, price.price_usd): price for price in self.held}
        HeldPrice.objects.bulk_create([price for identity, price in fresh.items() if identity not in known])
