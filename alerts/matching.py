"""The alert-matching subscription: which alerts a price moves. Handles whole batches with a fixed number of queries.

Guarantee: decision, notification, alert state and the `send_alert_email` command commit together with the ack.
Each event is judged by the prices as consumed up to it; the offers, which may be ahead, only say whether its price is
still current. Locks the alerts it may change, in id order; reads the offers without locking.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.db.models import Q
from django.utils import timezone

from alerts import owners
from alerts.channels.fan_out import fan_out
from alerts.events import ALERT_CREATED, SEND_ALERT_EMAIL
from alerts.models import Alert, Decision, Notification
from alerts.rules import (
    Outcome,
    State,
    Verdict,
    judge_first_check,
    judge_price,
    judge_return,
    judge_withdrawal,
)
from alerts.seen_prices import OfferEvent, Prices, after, best_for, offered_to, prices_before, remember
from jobs.errors import PermanentError
from jobs.messages import Message, NewMessage
from jobs.outbox import publish
from pricing.events import OFFER_RETURNED, OFFER_WITHDRAWN, AvailabilityChanged, PriceChanged
from pricing.models import Offer


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


def _parse(message: Message) -> Event:
    if message.type == ALERT_CREATED:
        return FirstCheck.parse(message)
    if message.type in (OFFER_WITHDRAWN, OFFER_RETURNED):
        return AvailabilityChanged.parse(message)
    return PriceChanged.parse(message)


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
    parsed = [_parse(message) for message in messages]
    moved = [event for event in parsed if not isinstance(event, FirstCheck)]
    wine_ids = {event.wine_id for event in parsed}
    offers = _current_offers(wine_ids)
    alerts = _alerts_that_may_move(parsed)
    prices = prices_before(wine_ids, moved, offers)
    told = _last_mails(parsed, alerts)
    outbox = _Outbox(now=timezone.now(), attributes={m.event_id: m.attributes for m in messages})
    for event in parsed:
        if isinstance(event, FirstCheck):
            for alert in alerts[event.wine_id]:
                if alert.pk == event.alert_id:
                    _first_check(alert, event, offers[event.wine_id], prices[event.wine_id], outbox)
            continue
        before = prices[event.wine_id].get(event.merchant_id)
        if before is None or before.occurred_at <= event.occurred_at:  # a redriven event may be older
            prices[event.wine_id][event.merchant_id] = after(event)
        for alert in alerts[event.wine_id]:
            if alert.merchant_id not in (None, event.merchant_id):
                continue
            if isinstance(event, PriceChanged):
                _price_moved(alert, event, offers[event.wine_id], prices[event.wine_id], outbox)
            elif event.offered:
                _returned(alert, event, offers[event.wine_id], told.get(alert.pk), outbox)
            else:
                _withdrawn(alert, event, offers[event.wine_id], prices[event.wine_id], outbox)
    remember(moved, prices)
    _write(outbox)


def _price_moved(alert: Alert, event: PriceChanged, offers: dict[str, Offer], prices: Prices, outbox: _Outbox) -> None:
    offer = offers.get(event.merchant_id)
    verdict = judge_price(
        state=State(alert.state),
        threshold=alert.threshold_usd,
        price=event.new_price_usd,
        current=_is_current(offer, event.event_id),
        best_after=best_for(alert, prices),
        told_at=alert.last_notified_price_usd,
    )
    if verdict is None:
        return
    merchant = offer.merchant.name if offer else event.merchant_id
    if verdict.outcome is Outcome.MAILED:
        _notify(alert, event.event_id, outbox, event.old_price_usd, event.new_price_usd, merchant, event.occurred_at)
    outbox.note(alert, event.event_id, verdict, price=event.new_price_usd, merchant=merchant)


def _withdrawn(
    alert: Alert, event: AvailabilityChanged, offers: dict[str, Offer], prices: Prices, outbox: _Outbox
) -> None:
    verdict = judge_withdrawal(
        state=State(alert.state), threshold=alert.threshold_usd, best_after=best_for(alert, prices)
    )
    if verdict is not None:
        offer = offers.get(event.merchant_id)
        merchant = offer.merchant.name if offer else event.merchant_id
        outbox.note(alert, event.event_id, verdict, price=None, merchant=merchant)


def _returned(
    alert: Alert, event: AvailabilityChanged, offers: dict[str, Offer], last: Notification | None, outbox: _Outbox
) -> None:
    if event.price_event_id:
        return  # the price that it came back with has been judged: its event stands before this one
    offer = offers.get(event.merchant_id)
    merchant = offer.merchant.name if offer else event.merchant_id
    verdict = judge_return(
        state=State(alert.state),
        threshold=alert.threshold_usd,
        price=event.price_usd,
        current=_is_current(offer, event.event_id),
        told_of_it=last is not None and (last.merchant_name, last.new_price_usd) == (merchant, event.price_usd),
    )
    if verdict is None:
        return
    if verdict.outcome is Outcome.MAILED:
        _notify(alert, event.event_id, outbox, None, event.price_usd, merchant, event.occurred_at)
    outbox.note(alert, event.event_id, verdict, price=event.price_usd, merchant=merchant)


def _is_current(offer: Offer | None, event_id: str) -> bool:
    return offer is not None and offer.event_id == event_id and offer.withdrawn_at is None


def _first_check(alert: Alert, event: FirstCheck, offers: dict[str, Offer], prices: Prices, outbox: _Outbox) -> None:
    relevant = offered_to(alert, prices)
    best = min(relevant, key=lambda merchant: relevant[merchant].price, default=None)
    offer = offers.get(best) if best else None
    verdict = judge_first_check(
        state=State(alert.state),
        threshold=alert.threshold_usd,
        best_now=relevant[best].price if best else None,
        current=bool(best and _is_current(offer, relevant[best].event_id)),
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


def _alerts_that_may_move(events: Iterable[Event]) -> dict[str, list[Alert]]:
    """By wine: those to check first, those that were told, and those waiting at or above the batch's lowest price.

    None of people who have not confirmed their address: theirs stay as they are until waiting.py wakes them.
    """
    moved = [event for event in events if not isinstance(event, FirstCheck)]
    may_move = Q(pk__in=[event.alert_id for event in events if isinstance(event, FirstCheck)])
    if moved:
        asked = [after(event).price for event in moved if not after(event).withdrawn]
        reached = Q(state=Alert.State.ARMED, threshold_usd__gte=min(asked)) if asked else Q()
        may_move |= Q(wine_id__in={event.wine_id for event in moved}) & (Q(state=Alert.State.FIRED) | reached)
    alerts: dict[str, list[Alert]] = defaultdict(list)
    listening = Alert.objects.exclude(state=Alert.State.PAUSED).filter(may_move, owners.CONFIRMED)
    for alert in listening.select_for_update(no_key=True, of=("self",)).order_by("pk"):
        alerts[alert.wine_id].append(alert)
    return alerts


def _last_mails(events: Iterable[Event], alerts: dict[str, list[Alert]]) -> dict[int, Notification]:
    """By alert, for those that may hear of an offer's return; no query where nothing returned."""
    returned = {event.wine_id for event in events if isinstance(event, AvailabilityChanged) and event.offered}
    asked = [alert.pk for wine_id in returned for alert in alerts[wine_id]]
    if not asked:
        return {}
    newest = Notification.objects.filter(alert__in=asked).order_by("alert_id", "-id").distinct("alert_id")
    return {mail.alert_id: mail for mail in newest}


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
    fan_out(notifications, attributes=outbox.attributes)


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
