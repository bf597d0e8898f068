"""Offers that end: a product deleted or sold out, a listing gone, a wine absent from a catalogue.

Guarantee: the offers' new state and the facts `wine.offer_withdrawn` are committed together; a withdrawal that is
older than what the merchant has said since changes nothing. A later price brings the offer back: see services. Called
by listings and by whoever compares catalogues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db import transaction

from jobs import outbox
from jobs.messages import NewMessage, new_event_id
from pricing import offers, rules
from pricing.events import NO_ATTRIBUTES, OFFER_WITHDRAWN, AvailabilityChanged
from pricing.models import Merchant, Wine
from pricing.rules import Standing


def withdraw(
    *,
    merchant: Merchant,
    wine_ids: Iterable[str],
    at: datetime,
    why: str,
    now: datetime,
    attributes: Mapping[str, str] = NO_ATTRIBUTES,
) -> list[str]:
    """The merchant has offered these wines no longer since `at`; returns those for which that was news, in id order.

    `why` is told with the fact, in words. Set-wise: five statements, however many wines.
    """
    with transaction.atomic(savepoint=False):
        # The same lock, in the same order, as feed intake: see services.record_observations.
        rows = Wine.objects.select_for_update(no_key=True).filter(pk__in=set(wine_ids)).order_by("id")
        wines = {wine.pk: wine for wine in rows.only("id", "name", "vintage")}
        standings = offers.read(merchant, wines)
        ended: dict[str, Standing] = {}
        messages: list[NewMessage] = []
        for wine_id in sorted(standings):
            before = standings[wine_id]
            after = rules.withdrawn(before, at=at, now=now)
            if after != before:
                ended[wine_id] = after
            if after.withdrawn_at and not before.withdrawn_at:
                event = AvailabilityChanged(
                    event_id=new_event_id(),
                    type=OFFER_WITHDRAWN,
                    wine_id=wine_id,
                    wine_name=wines[wine_id].full_name,
                    merchant_id=merchant.pk,
                    price_usd=before.price_usd,
                    occurred_at=at,
                    why=why,
                )
                messages.append(event.as_message(attributes))
        if ended:
            offers.write(merchant, ended)
        outbox.publish(messages)
    return [message.key for message in messages]
