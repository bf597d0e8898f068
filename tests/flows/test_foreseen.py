"""The preflight of a redrive knows what each subscription would refuse."""

import json

import pytest
from django.db import transaction

from jobs.errors import PermanentError
from jobs.messages import Message, NewMessage
from jobs.models import DeadLetter
from jobs.outbox import publish
from jobs.subscriptions import Route, load_routes
from jobs.worker import drain
from pricing.events import PRICE_CHANGED

BODY = {
    "event_id": "evt_9f31",
    "type": PRICE_CHANGED,
    "occurred_at": "2026-03-14T09:12:04Z",
    "wine_id": "wn_4417",
    "wine_name": "Ch. Montrose 2016",
    "merchant_id": "mch_082",
    "currency": "USD ",
}


def foresees(route: Route, message: Message) -> bool:
    try:
        if route.check is not None:
            route.check(message)
    except PermanentError:
        return True
    return False


@pytest.mark.django_db(transaction=True)
@pytest.mark.publishes_malformed_events
def test_what_a_subscription_refuses_of_a_price_its_check_refuses_too() -> None:
    with transaction.atomic():
        publish([NewMessage(PRICE_CHANGED, "wn_4417", BODY, event_id="evt_9f31")])
    drain()
    refused = set(DeadLetter.objects.values_list("subscription_name", flat=True))
    message = Message(1, 1, "evt_9f31", PRICE_CHANGED, "wn_4417", json.dumps(BODY), None, "2026-03-14T09:12:04Z", 1)
    takers = {name: route for name, route in load_routes().items() if PRICE_CHANGED in route.message_types}
    assert refused == {name for name, route in takers.items() if foresees(route, message)}
    assert {"price-history", "alert-matching", "analytics-rollup"} <= refused
