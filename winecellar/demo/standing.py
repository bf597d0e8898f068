"""What the database says before, while and after prices are sent: offers, alerts, queues, the log, the ledger.

Reads only. Called by orchestra.py and reckoning.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import Count, QuerySet

from alerts.events import ALERT_CREATED
from alerts.models import Alert, Decision, Notification
from jobs import queue
from jobs.models import DeadLetter, LoggedMessage, Process, ProcessedMessage
from pricing.contract import PRICE_CURRENCY
from pricing.events import OFFER_RETURNED, OFFER_WITHDRAWN, PRICE_CHANGED
from pricing.models import Merchant, Offer
from winecellar.demo import catalogue
from winecellar.demo.market import Listing
from winecellar.demo.oracle import AcceptedPrice, DueMail, WatchedAlert

# How matching begins the reason of a decision about a price that was no longer the offer's when it looked.
SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Standing:
    """How things stood at `at`, which is the database's clock. `owners` say whose alert on what, for a sentence."""

    at: datetime
    prices: dict[tuple[str, str], Decimal]
    alerts: list[WatchedAlert]
    owners: dict[int, str]


def standing_now() -> Standing:
    """Read the offers and the alerts that listen. Call it when the queues are empty, else it is half a truth.

    Those that wait for something else than a price in dollars, or sleep, are beyond the oracle and left out.
    """
    plain = _listening().filter(target__isnull=False, currency=PRICE_CURRENCY, expires_at__isnull=True)
    awake = plain.filter(snoozed_until__isnull=True, snoozed_until_rise=False)
    alerts = list(awake.select_related("user", "wine"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (at,) = cursor.fetchone()
    told = _last_mails()
    return Standing(
        at=at,
        prices={(o.wine_id, o.merchant_id): o.price_usd for o in Offer.objects.filter(withdrawn_at__isnull=True)},
        alerts=[_watched(alert, told.get(alert.pk)) for alert in alerts],
        owners={a.pk: f"{a.user.get_short_name()}’s alert on {a.wine.full_name} at ${a.target:,.2f}" for a in alerts},
    )


def untouched_alerts(before: Standing) -> list[WatchedAlert]:
    """The alerts that nobody has deleted, paused, resumed or changed since: for the others anything may be right."""
    checked_anew = LoggedMessage.objects.filter(published_at__gte=before.at, type=ALERT_CREATED)
    touched = {body["alert_id"] for body in checked_anew.values_list("body", flat=True)}
    there = set(_listening().filter(snoozed_until__isnull=True, snoozed_until_rise=False).values_list("pk", flat=True))
    return [alert for alert in before.alerts if alert.id in there - touched]


def waiting_deliveries() -> int:
    """Everything published and not yet acked, over all subscriptions; an alert not yet checked is one of them."""
    return sum(depth.waiting for depth in queue.depths())


def is_alive(kind: str, *, since: datetime) -> bool:
    """Whether a process of this kind (scheduler, watchman) has shown a sign of life since."""
    return Process.objects.filter(kind=kind, beat_at__gte=since).exists()


def prices_in_log(since: datetime) -> list[AcceptedPrice]:
    """Every price change, withdrawal and return published since, in publication order, whoever sent it.

    A return at another price is told by its price change alone.
    """
    types = (PRICE_CHANGED, OFFER_WITHDRAWN, OFFER_RETURNED)
    rows = LoggedMessage.objects.filter(published_at__gte=since, type__in=types).order_by("id")
    bodies = rows.values_list("event_id", "type", "body").iterator()
    return [_accepted(event_id, type_, body) for event_id, type_, body in bodies if "price_event_id" not in body]


def _accepted(event_id: str, type_: str, body: dict[str, Any]) -> AcceptedPrice:
    price = None
    if type_ != OFFER_WITHDRAWN:
        price = Decimal(str(body["price_usd" if type_ == OFFER_RETURNED else "new_price_usd"]))
    return AcceptedPrice(event_id, body["wine_id"], body["merchant_id"], price, is_return=type_ == OFFER_RETURNED)


def superseded_since(since: datetime, alert_ids: Collection[int]) -> set[DueMail]:
    """The (alert, event) that matching says it looked at when a newer price had come."""
    rows = Decision.objects.filter(
        alert_id__in=alert_ids,
        decided_at__gte=since,
        outcome=Decision.Outcome.NOT_MAILED,
        reason__startswith=SUPERSEDED,
    )
    return {DueMail(alert_id, event_id) for alert_id, event_id in rows.values_list("alert_id", "event_id")}


def acked_since(since: datetime) -> dict[str, int]:
    """Deliveries acked, by subscription: each ack writes one row of the ledger, in the same transaction."""
    rows = ProcessedMessage.objects.filter(processed_at__gte=since).values_list("consumer_name")
    return dict(rows.annotate(Count("event_id")).order_by("consumer_name"))


def dead_letters_since(since: datetime) -> list[str]:
    """What could not be processed since, in a line each."""
    rows = DeadLetter.objects.filter(dead_lettered_at__gte=since)
    return [f"{row.event_id} for {row.subscription_name}: {row.reason}" for row in rows]


def listings_now() -> list[Listing]:
    """The demo's offers at their present prices, with what each usually costs."""
    usual = {
        (wine.id, merchant.id): catalogue.usual_price(wine, merchant)
        for wine in catalogue.wines()
        for merchant in catalogue.MERCHANTS
    }
    return [
        Listing(o.wine_id, o.merchant_id, usual[o.wine_id, o.merchant_id], o.price_usd)
        for o in Offer.objects.filter(wine__retired_at__isnull=True).order_by("wine_id", "merchant_id")
        if (o.wine_id, o.merchant_id) in usual
    ]


def wine_names() -> dict[str, str]:
    """“Ch. Montrose 2016” by id, of the catalogue."""
    return {wine.id: f"{wine.name} {wine.vintage or 'NV'}" for wine in catalogue.wines()}


def _listening() -> QuerySet[Alert]:
    return Alert.live.exclude(state=Alert.State.PAUSED)


def _last_mails() -> dict[int, tuple[str, Decimal]]:
    """Merchant and price of each alert's last mail."""
    ids = dict(Merchant.objects.values_list("name", "pk"))
    newest = Notification.objects.order_by("alert_id", "-id").distinct("alert_id")
    return {mail.alert_id: (ids.get(mail.merchant_name, ""), mail.new_price) for mail in newest}


def _watched(alert: Alert, told: tuple[str, Decimal] | None) -> WatchedAlert:
    return WatchedAlert(
        id=alert.pk,
        wine_id=alert.wine_id,
        merchant_id=alert.merchant_id,
        target=alert.target or Decimal(0),
        watching=alert.state == Alert.State.ARMED,
        told=told,
    )
