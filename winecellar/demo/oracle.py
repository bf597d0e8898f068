"""Which mails are due: an independent model of the alerts, to hold the system against. Pure, imports no Django.

It knows only what the pages promise: an alert mails when a price at or below its target arrives while it is watching,
then is silent until no price that it listens to is at or below the target any more, be it dearer or withdrawn, or one
has fallen a further step below the last that was mailed. An offer that comes back as it was mails too, unless the last
mail was about just that. The demo has no cooldown. Called by reckoning.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

Prices = Mapping[tuple[str, str], Decimal]  # (wine id, merchant id) → price


@dataclass(frozen=True, slots=True)
class WatchedAlert:
    """An alert as it stood before the first price was sent. `merchant_id` None: any merchant.

    `told` is the merchant and the price of its last mail.
    """

    id: int
    wine_id: str
    merchant_id: str | None
    target: Decimal
    watching: bool
    told: tuple[str, Decimal] | None = None

    def listens_to(self, merchant_id: str) -> bool:
        return self.merchant_id in (None, merchant_id)


@dataclass(frozen=True, slots=True)
class AcceptedPrice:
    """A price change that the feed answered with 202 and this event id.

    Without a price the offer was withdrawn; `is_return`: it is offered again, at the price it had.
    """

    event_id: str
    wine_id: str
    merchant_id: str
    price_usd: Decimal | None
    is_return: bool = False


@dataclass(frozen=True, slots=True)
class DueMail:
    alert_id: int
    event_id: str


def due_mails(
    *,
    alerts: Iterable[WatchedAlert],
    prices: Prices,
    accepted: Iterable[AcceptedPrice],
    further_fall: Decimal,
    superseded: Collection[DueMail] = (),
) -> list[DueMail]:
    """The mails that these prices, accepted in this order, make due.

    `prices` are the offers before the first of them. `superseded` are the (alert, event) that the system says it
    looked at too late; that is believed only where a newer price of the same offer was accepted, and such an event
    leaves the alert as it was. `further_fall` is the part of a mailed price by which another has to be lower.
    """
    events = list(accepted)
    replaced = _replaced(events)
    excused = {due for due in superseded if due.event_id in replaced}
    now: dict[tuple[str, str], Decimal] = dict(prices)
    of_wine: dict[str, list[WatchedAlert]] = defaultdict(list)
    for alert in alerts:
        of_wine[alert.wine_id].append(alert)
    everyone = [alert for same_wine in of_wine.values() for alert in same_wine]
    watching = {alert.id: alert.watching for alert in everyone}
    told = {alert.id: alert.told for alert in everyone}
    due: list[DueMail] = []
    for event in events:
        offer = (event.wine_id, event.merchant_id)
        if event.price_usd is None:
            now.pop(offer, None)
        else:
            now[offer] = event.price_usd
        for alert in of_wine[event.wine_id]:
            mail = DueMail(alert.id, event.event_id)
            if not alert.listens_to(event.merchant_id) or mail in excused:
                continue
            price = event.price_usd
            if watching[alert.id] and price is not None and price <= alert.target:
                watching[alert.id] = False
                said = (event.merchant_id, price)
                if not (event.is_return and told[alert.id] == said):
                    due.append(mail)
                    told[alert.id] = said
            elif not watching[alert.id] and not _is_met(alert, now):
                watching[alert.id] = True
            elif not watching[alert.id] and price is not None and _is_further(price, told[alert.id], further_fall):
                due.append(mail)
                told[alert.id] = (event.merchant_id, price)
    return due


def _replaced(events: Iterable[AcceptedPrice]) -> set[str]:
    """The events after which another price of the same offer was accepted."""
    last: dict[tuple[str, str], str] = {}
    replaced = set()
    for event in events:
        offer = (event.wine_id, event.merchant_id)
        if offer in last:
            replaced.add(last[offer])
        last[offer] = event.event_id
    return replaced


def _is_further(price: Decimal, told: tuple[str, Decimal] | None, fall: Decimal) -> bool:
    return told is not None and price <= told[1] * (1 - fall)


def _is_met(alert: WatchedAlert, prices: Prices) -> bool:
    return any(
        price <= alert.target
        for (wine_id, merchant_id), price in prices.items()
        if wine_id == alert.wine_id and alert.listens_to(merchant_id)
    )
