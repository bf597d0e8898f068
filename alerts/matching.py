"""The alert-matching subscription: which alerts a price moves. Handles whole batches with a fixed number of queries.

Guarantee: decision, notification, alert state and the `send_alert_email` command commit together with the ack.
Each event is judged by the prices as consumed up to it; the offers, which may be ahead, only say whether its price is
still current. Locks the alerts it may change, in id order; reads the offers without locking.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from django.db.models import Q
from django.utils import timezone

from alerts import owners
from alerts.events import ALERT_CREATED, SEND_ALERT_EMAIL
from alerts.models import Alert, Decision, Notification, SeenPrice
from alerts.rules import Outcome, State, Verdict, judge_first_check, judge_price
from jobs.errors import PermanentError
from jobs.messages import Message, NewMessage
from jobs.outbox import publish
from pricing.events import PriceChanged
from pricing.models import Offer


@dataclass(frozen=True)
class Seen:
    """A merchant's price as of the event being judged."""

    price: Decimal
    occurred_at: datetime
    event_id: str


Prices = dict[str, Seen]  # by merchant id


LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


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


@dataclass
class _Outbox:
    """What a batch decides, to be written at its end."""

    now: datetime
    decisions: list[Decision] = field(default_factory=list)
    notifications: list[Notification] = field(default_factory=list)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)  # by event id
    changed: dict[int, Alert] = field(default_factory=dict)

    def note(self, alert: Alert, event_id: str, verdict: Verdict, *, price: Decimal | None, merchant: str) -> None:
        self.decisions.append(
            Decision(
                alert=alert,
                event_id=event_id,
                outcome=verdict.outcome.value,
                reason=verdict.reason,
                price_usd=price,
                merchant_name=merchant,
                decided_at=self.now,
            )
        )
        if alert.state != verdict.state:
            alert.state = Alert.State(verdict.state.value)
            self.changed[alert.pk] = alert


def match(messages: Sequence[Message]) -> None:
    """Decide about every alert that these messages can move. Raises PermanentError for a message not of ours."""
    parsed = [FirstCheck.parse(m) if m.type == ALERT_CREATED else PriceChanged.parse(m) for m in messages]
    wine_ids = {event.wine_id for event in parsed}
    offers = _current_offers(wine_ids)
    alerts = _alerts_that_may_move(parsed)
    prices = _prices_before(wine_ids, parsed, offers)
    outbox = _Outbox(now=timezone.now(), attributes={m.event_id: m.attributes for m in messages})
    for event in parsed:
        if isinstance(event, FirstCheck):
            for alert in alerts[event.wine_id]:
                if alert.pk == event.alert_id:
                    _first_check(alert, event, offers[event.wine_id], prices[event.wine_id], outbox)
            continue
        before = prices[event.wine_id].get(event.merchant_id)
        if before is None or before.occurred_at <= event.occurred_at:  # a redriven event may be older
            prices[event.wine_id][event.merchant_id] = Seen(event.new_price_usd, event.occurred_at, event.event_id)
        for alert in alerts[event.wine_id]:
            if alert.merchant_id in (None, event.merchant_id):
                _price_moved(alert, event, offers[event.wine_id], prices[event.wine_id], outbox)
    _remember(parsed, prices)
    _write(outbox)


def _price_moved(alert: Alert, event: PriceChanged, offers: dict[str, Offer], prices: Prices, outbox: _Outbox) -> None:
    offer = offers.get(event.merchant_id)
    relevant = [seen.price for merchant, seen in prices.items() if alert.merchant_id in (None, merchant)]
    verdict = judge_price(
        state=State(alert.state),
        threshold=alert.threshold_usd,
        price=event.new_price_usd,
        current=offer is not None and offer.event_id == event.event_id,
        best_after=min(relevant, default=None),
        told_at=alert.last_notified_price_usd,
    )
    if verdict is None:
        return
    merchant = offer.merchant.name if offer else event.merchant_id
    if verdict.outcome is Outcome.MAILED:
        _notify(alert, event.event_id, outbox, event.old_price_usd, event.new_price_usd, merchant, event.occurred_at)
    outbox.note(alert, event.event_id, verdict, price=event.new_price_usd, merchant=merchant)


def _first_check(alert: Alert, event: FirstCheck, offers: dict[str, Offer], prices: Prices, outbox: _Outbox) -> None:
    relevant = {merchant: seen for merchant, seen in prices.items() if alert.merchant_id in (None, merchant)}
    best = min(relevant, key=lambda merchant: relevant[merchant].price, default=None)
    offer = offers.get(best) if best else None
    verdict = judge_first_check(
        state=State(alert.state),
        threshold=alert.threshold_usd,
        best_now=relevant[best].price if best else None,
        current=bool(best and offer and offer.event_id == relevant[best].event_id),
    )
    if verdict is None:
        return
    name = offer.merchant.name if offer else ""
    if best and verdict.outcome is Outcome.MAILED:
        seen = relevant[best]
        _notify(alert, event.event_id, outbox, None, seen.price, name, seen.occurred_at)
    outbox.note(alert, event.event_id, verdict, price=relevant[best].price if best else None, merchant=name)


def _notify(
    alert: Alert,
    event_id: str,
    outbox: _Outbox,
    old_price: Decimal | None,
    new_price: Decimal,
    merchant: str,
    occurred_at: datetime,
) -> None:
    alert.last_notified_at = outbox.now
    alert.last_notified_price_usd = new_price
    outbox.changed[alert.pk] = alert
    outbox.notifications.append(
        Notification(
            alert=alert,
            event_id=event_id,
            old_price_usd=old_price,
            new_price_usd=new_price,
            threshold_usd=alert.threshold_usd,
            merchant_name=merchant,
            occurred_at=occurred_at,
            created_at=outbox.now,
        )
    )


def _current_offers(wine_ids: set[str]) -> dict[str, dict[str, Offer]]:
    offers: dict[str, dict[str, Offer]] = defaultdict(dict)
    for offer in Offer.objects.filter(wine_id__in=wine_ids).select_related("merchant"):
        offers[offer.wine_id][offer.merchant_id] = offer
    return offers


def _alerts_that_may_move(events: Iterable[FirstCheck | PriceChanged]) -> dict[str, list[Alert]]:
    """By wine: those to check first, those that were told, and those waiting at or above the batch's lowest price.

    None of people who have not confirmed their address: theirs stay as they are until waiting.py wakes them.
    """
    prices = [event for event in events if isinstance(event, PriceChanged)]
    may_move = Q(pk__in=[event.alert_id for event in events if isinstance(event, FirstCheck)])
    if prices:
        lowest = min(event.new_price_usd for event in prices)
        may_move |= Q(wine_id__in={event.wine_id for event in prices}) & (
            Q(state=Alert.State.FIRED) | Q(state=Alert.State.ARMED, threshold_usd__gte=lowest)
        )
    alerts: dict[str, list[Alert]] = defaultdict(list)
    listening = Alert.objects.exclude(state=Alert.State.PAUSED).filter(may_move, owners.CONFIRMED)
    for alert in listening.select_for_update(no_key=True, of=("self",)).order_by("pk"):
        alerts[alert.wine_id].append(alert)
    return alerts


def _prices_before(
    wine_ids: set[str], events: Iterable[FirstCheck | PriceChanged], offers: dict[str, dict[str, Offer]]
) -> dict[str, Prices]:
    """What each wine cost at each merchant before this batch, as matching has consumed it.

    An offer that matching never saw change (it was loaded, not announced) counts as it is, or as it was before its
    first event here.
    """
    prices: dict[str, Prices] = defaultdict(dict)
    for wine_id, by_merchant in offers.items():
        for merchant, offer in by_merchant.items():
            prices[wine_id][merchant] = Seen(offer.price_usd, offer.occurred_at, offer.event_id)
    for event in reversed([event for event in events if isinstance(event, PriceChanged)]):
        prices[event.wine_id].pop(event.merchant_id, None)
        if event.old_price_usd is not None:
            prices[event.wine_id][event.merchant_id] = Seen(event.old_price_usd, LONG_AGO, "")
    for row in SeenPrice.objects.filter(wine_id__in=wine_ids):
        prices[row.wine_id][row.merchant_id] = Seen(row.price_usd, row.occurred_at, row.event_id)
    return prices


def _remember(events: Iterable[FirstCheck | PriceChanged], prices: dict[str, Prices]) -> None:
    """Note what has been consumed, for the next batch."""
    moved = {(event.wine_id, event.merchant_id) for event in events if isinstance(event, PriceChanged)}
    rows = [
        SeenPrice(
            wine_id=wine_id,
            merchant_id=merchant,
            price_usd=prices[wine_id][merchant].price,
            occurred_at=prices[wine_id][merchant].occurred_at,
            event_id=prices[wine_id][merchant].event_id,
        )
        for wine_id, merchant in sorted(moved)
    ]
    SeenPrice.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["wine", "merchant"],
        update_fields=["price_usd", "occurred_at", "event_id"],
    )


def _write(outbox: _Outbox) -> None:
    keys = {(decision.alert_id, decision.event_id) for decision in outbox.decisions}
    known = _already_decided(keys)
    Decision.objects.bulk_create(d for d in outbox.decisions if (d.alert_id, d.event_id) not in known)
    notifications = Notification.objects.bulk_create(
        n for n in outbox.notifications if (n.alert_id, n.event_id) not in known
    )
    if outbox.changed:
        Alert.objects.bulk_update(
            outbox.changed.values(), ["state", "last_notified_at", "last_notified_price_usd"], batch_size=1_000
        )
    publish([_command(notification, outbox.attributes) for notification in notifications])


def _already_decided(keys: set[tuple[int, str]]) -> set[tuple[int, str]]:
    """What a redrive older than the ledger would decide again: one decision and one mail per (alert, event), ever."""
    if not keys:
        return set()
    rows = Decision.objects.filter(alert_id__in={a for a, _ in keys}, event_id__in={e for _, e in keys})
    return set(rows.values_list("alert_id", "event_id"))


def _command(notification: Notification, attributes: dict[str, dict[str, str]]) -> NewMessage:
    return NewMessage(
        type=SEND_ALERT_EMAIL,
        key=f"alert:{notification.alert_id}",
        body={
            "notification_id": notification.pk,
            "alert_id": notification.alert_id,
            "event_id": notification.event_id,
        },
        attributes={**attributes.get(notification.event_id, {}), "caused_by": notification.event_id},
    )
