"""A batch of messages as alerts see it: each event with the prices around it, as matching has consumed them up to it.

Guarantee: an offer that is ahead of the events decides nothing; it only says whether a price is still current. All that
judging needs is read here, in a fixed number of queries. Called by matching alone, in its transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from alerts import lows
from alerts.amounts import Amounts
from alerts.events import ALERT_CREATED
from alerts.lows import Question, Window
from alerts.rules import Sight
from alerts.seen_prices import OfferEvent, Prices, Seen, after, offered_by, prices_before
from jobs.errors import PermanentError
from jobs.messages import Message
from pricing.events import OFFER_RETURNED, OFFER_WITHDRAWN, AvailabilityChanged, PriceChanged
from pricing.models import Offer

Offers = dict[str, dict[str, Offer]]  # by wine and merchant


@dataclass(frozen=True)
class FirstCheck:
    """A parsed `alert.created`."""

    event_id: str
    alert_id: int
    wine_id: str

    @classmethod
    def parse(cls, message: Message) -> FirstCheck:
        alert_id, wine_id = message.body.get("alert_id"), message.body.get("wine_id")
        if not isinstance(alert_id, int) or not isinstance(wine_id, str):
            raise PermanentError("alert_id and wine_id required")
        return cls(message.event_id, alert_id, wine_id)


Event = FirstCheck | OfferEvent


def parse(message: Message) -> Event:
    """Raises PermanentError for a message not of ours."""
    if message.type == ALERT_CREATED:
        return FirstCheck.parse(message)
    if message.type in (OFFER_WITHDRAWN, OFFER_RETURNED):
        return AvailabilityChanged.parse(message)
    return PriceChanged.parse(message)


@dataclass(frozen=True, eq=False)
class Told:
    """What a mail about one event would say: from whom, at what price, since when, and what was asked before.

    One for all who are told the same, so that they are known by it: a hundred thousand may be. The time is text
    already.
    """

    merchant: str
    price: Decimal | None
    old_price: Decimal | None
    occurred_at: str


@dataclass
class Scene:
    """One event. `seen` is its merchant's price as of it, `before` the one until then; `prices` are everybody's."""

    event: Event
    place: int
    prices: Prices
    before: Seen | None = None
    seen: Seen | None = None
    _views: dict[tuple[str, Window], tuple[Sight | None, Told]] = field(default_factory=dict)

    @property
    def is_return(self) -> bool:
        return isinstance(self.event, AvailabilityChanged) and self.event.offered

    @property
    def is_told_by_its_price(self) -> bool:
        """A return at another price: the price's own event stands before it and has been judged."""
        return isinstance(self.event, AvailabilityChanged) and self.event.offered and bool(self.event.price_event_id)

    @property
    def is_withdrawal(self) -> bool:
        return isinstance(self.event, AvailabilityChanged) and not self.event.offered

    def concerns(self, merchant_id: str | None) -> bool:
        return isinstance(self.event, FirstCheck) or merchant_id in (None, self.event.merchant_id)

    def view(self, story: Story, currency: str, window: Window) -> tuple[Sight | None, Told]:
        """What an alert in this currency, with this merchant and window, sees. The same for all that are alike."""
        key = (currency, window)
        if key not in self._views:
            self._views[key] = story.look(self, currency, window)
        return self._views[key]


@dataclass
class Story:
    """All events of a batch in their order."""

    scenes: list[Scene]
    offers: Offers
    amounts: Amounts
    lowest: dict[Question, Decimal]
    prices: dict[str, Prices]  # as they stand behind the last event
    currencies: Sequence[str]

    def __post_init__(self) -> None:
        self.of_wine: dict[str, list[Scene]] = defaultdict(list)
        self.checks: dict[int, list[Scene]] = defaultdict(list)
        for scene in self.scenes:
            if isinstance(scene.event, FirstCheck):
                self.checks[scene.event.alert_id].append(scene)
            else:
                self.of_wine[scene.event.wine_id].append(scene)

    def of(self, alert_id: int, wine_id: str, merchant_id: str | None) -> list[Scene]:
        """The scenes that one alert is in, in order."""
        moved = [scene for scene in self.of_wine.get(wine_id, ()) if scene.concerns(merchant_id)]
        own = [scene for scene in self.checks.get(alert_id, ()) if scene.event.wine_id == wine_id]
        return sorted(moved + own, key=lambda scene: scene.place) if own else moved

    def asked(self) -> dict[tuple[str, str], Decimal]:
        """The lowest amount that was asked for each wine, in each currency."""
        lowest: dict[tuple[str, str], Decimal] = {}
        for wine_id, scenes in self.of_wine.items():
            offered = [scene.seen for scene in scenes if scene.seen is not None and not scene.seen.withdrawn]
            for currency in self.currencies:
                amounts = [amount for seen in offered if (amount := self._amount(seen, currency)) is not None]
                if amounts:
                    lowest[wine_id, currency] = min(amounts)
        return lowest

    def look(self, scene: Scene, currency: str, window: Window) -> tuple[Sight | None, Told]:
        if isinstance(scene.event, FirstCheck):
            return self._look_around(scene, currency, window)
        assert scene.seen is not None
        relevant = offered_by(scene.prices, window[0]).values()
        amounts = [amount for seen in relevant if (amount := self._amount(seen, currency)) is not None]
        stood = scene.before if scene.before is not None and not scene.before.withdrawn else None
        sight = Sight(
            price=self._amount(scene.seen, currency),
            current=self._is_current(scene.event.wine_id, scene.event.merchant_id, scene.event.event_id),
            best_after=min(amounts, default=None),
            previous=self._amount(stood, currency) if stood else None,
            no_cheaper=stood is not None and _asks_no_less(scene.seen, stood),
            is_low=self._is_low(_question(scene, window), scene.seen),
            returned=scene.is_return,
        )
        told = Told(
            merchant=self._merchant(scene.event.wine_id, scene.event.merchant_id),
            price=None if scene.is_withdrawal else sight.price,
            old_price=self._old_price(scene, currency),
            occurred_at=scene.event.occurred_at.isoformat(),
        )
        return sight, told

    def _look_around(self, scene: Scene, currency: str, window: Window) -> tuple[Sight | None, Told]:
        """A first check sees the best relevant offer, whenever it came to be; what cannot be compared comes last."""
        best = _best(scene.prices, window[0], lambda seen: self._amount(seen, currency))
        if best is None:
            return None, Told("", None, None, "")
        merchant_id, seen = best
        price = self._amount(seen, currency)
        sight = Sight(
            price=price,
            current=self._is_current(scene.event.wine_id, merchant_id, seen.event_id),
            best_after=price,
            is_low=self._is_low(_question(scene, window), seen),
        )
        return sight, Told(self._merchant(scene.event.wine_id, merchant_id), price, None, seen.occurred_at.isoformat())

    def _amount(self, seen: Seen, currency: str) -> Decimal | None:
        return self.amounts.of(currency, seen.price, seen.day, seen.native_price, seen.native_currency)

    def _old_price(self, scene: Scene, currency: str) -> Decimal | None:
        event = scene.event
        if not isinstance(event, PriceChanged) or event.old_price_usd is None or scene.seen is None:
            return None
        if scene.before is not None and scene.before.price == event.old_price_usd:
            return self._amount(scene.before, currency)
        return self._amount(Seen(event.old_price_usd, event.occurred_at, "", scene.seen.day), currency)

    def _is_low(self, question: Question | None, seen: Seen) -> bool:
        low = self.lowest.get(question) if question else None
        return low is not None and seen.price < low

    def _is_current(self, wine_id: str, merchant_id: str, event_id: str) -> bool:
        offer = self.offers[wine_id].get(merchant_id)
        return offer is not None and offer.event_id == event_id and offer.withdrawn_at is None

    def _merchant(self, wine_id: str, merchant_id: str) -> str:
        offer = self.offers[wine_id].get(merchant_id)
        return offer.merchant.name if offer else merchant_id


def tell(events: Sequence[Event], *, currencies: Sequence[str]) -> Story:
    """Read what the events' wines cost, and walk through the events."""
    wine_ids = {event.wine_id for event in events}
    moved = [event for event in events if not isinstance(event, FirstCheck)]
    offers = _current_offers(wine_ids)
    prices, unseen = prices_before(wine_ids, moved, offers)
    scenes = [_scene(event, place, prices, unseen) for place, event in enumerate(events)]
    around = [seen for scene in scenes for seen in (*scene.prices.values(), scene.before, scene.seen) if seen]
    return Story(
        scenes=scenes,
        offers=offers,
        amounts=Amounts(currencies, {seen.day for seen in around}),
        lowest=_lowest(scenes, lows.windows(wine_ids)),
        prices=prices,
        currencies=currencies,
    )


def _scene(event: Event, place: int, prices: dict[str, Prices], unseen: dict[str, Prices]) -> Scene:
    """A first check sees all there is; an event only what had come to be by then."""
    aside = unseen[event.wine_id]
    if isinstance(event, FirstCheck):
        return Scene(event, place, {**aside, **prices[event.wine_id]})
    earlier = {merchant: seen for merchant, seen in aside.items() if seen.occurred_at <= event.occurred_at}
    prices[event.wine_id] = {**earlier, **prices[event.wine_id]}
    before = prices[event.wine_id].get(event.merchant_id)
    seen = after(event, before)
    if before is None or before.occurred_at <= event.occurred_at:  # a redriven event may be older
        prices[event.wine_id] = {**prices[event.wine_id], event.merchant_id: seen}
    return Scene(event, place, prices[event.wine_id], before, seen)


def _lowest(scenes: Iterable[Scene], windows: Mapping[str, set[Window]]) -> dict[Question, Decimal]:
    """Before each event, over each window that some alert on its wine looks at."""
    standing: dict[Question, Decimal | None] = {}
    for scene in scenes:
        for window in windows.get(scene.event.wine_id, ()):
            question = _question(scene, window)
            if question is not None and scene.concerns(window[0]):
                standing[question] = _lowest_standing(scene, window)
    found = lows.lowest(list(standing))
    both = {question: [found.get(question), low] for question, low in standing.items()}
    known = {question: [low for low in some if low is not None] for question, some in both.items()}
    return {question: min(some) for question, some in known.items() if some}


def _question(scene: Scene, window: Window) -> Question | None:
    event = scene.event
    if not isinstance(event, FirstCheck):
        return Question(event.wine_id, event.event_id, event.occurred_at, window)
    best = _best(scene.prices, window[0], lambda seen: seen.price)
    return None if best is None else Question(event.wine_id, best[1].event_id, best[1].occurred_at, window)


def _lowest_standing(scene: Scene, window: Window) -> Decimal | None:
    """What could be had until the event. The history may not know it yet."""
    if isinstance(scene.event, FirstCheck):
        return None
    until = {**scene.prices, scene.event.merchant_id: scene.before} if scene.before else dict(scene.prices)
    if scene.before is None:
        until.pop(scene.event.merchant_id, None)
    relevant = offered_by({merchant: seen for merchant, seen in until.items() if seen is not None}, window[0])
    return min((seen.price for seen in relevant.values()), default=None)


def _best(prices: Prices, merchant_id: str | None, amount: Callable[[Seen], Decimal | None]) -> tuple[str, Seen] | None:
    """Merchant and price; what cannot be said in that money comes last."""
    relevant = offered_by(prices, merchant_id).items()
    known = [(amount(seen), merchant, seen) for merchant, seen in relevant]
    ordered = sorted(known, key=lambda one: (one[0] is None, one[0] or Decimal(0), one[1]))
    return (ordered[0][1], ordered[0][2]) if ordered else None


def _asks_no_less(seen: Seen, before: Seen) -> bool:
    """In the same other money."""
    if not seen.native_currency or seen.native_currency != before.native_currency:
        return False
    return (
        seen.native_price is not None and before.native_price is not None and seen.native_price >= before.native_price
    )


def _current_offers(wine_ids: set[str]) -> Offers:
    offers: Offers = defaultdict(dict)
    for offer in Offer.objects.filter(wine_id__in=wine_ids).select_related("merchant"):
        offers[offer.wine_id][offer.merchant_id] = offer
    return offers
