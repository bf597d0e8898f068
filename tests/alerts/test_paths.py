"""Random paths of prices through intake and the real handler, with pauses, redrives and late arrivals in between.

Held against reference.py, which was written apart. What was handled is redriven with the ledger emptied, and must
change nothing; each batch is cut anew.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alerts import matching
from alerts.models import Alert, Decision, Notification
from jobs import control
from jobs.models import LoggedMessage, ProcessedMessage
from jobs.worker import drain
from pricing import availability
from pricing.models import Merchant, Offer, Wine
from pricing.rules import Observation
from pricing.services import record_observations
from tests.alerts.reference import QUIET, Asked, Reference, Seen
from tests.cast import NOW, alert, merchant, wine

pytestmark = pytest.mark.django_db(transaction=True)
numbers = count(1)
MERCHANTS = ("082", "083")
# Few prices, so that they meet: around the target of 100, and a twentieth below one another, twice to the cent.
DEAR = 15_000
CENTS = st.sampled_from([DEAR, 10_001, 10_000, 9_990, 9_500, 9_501, 9_025, 9_000, 8_000])
# Most prices are seen before the next one comes; what is superseded comes by the plain ones.
SEEN = st.tuples(st.just("seen"), st.sampled_from(MERCHANTS), CENTS)
STEPS = st.one_of(
    *[SEEN] * 6,
    st.tuples(st.just("price"), st.sampled_from(MERCHANTS), CENTS),
    st.tuples(st.just("late"), st.sampled_from(MERCHANTS), CENTS),
    st.tuples(st.just("leave"), st.sampled_from(MERCHANTS), st.none()),
    st.tuples(st.just("handle"), st.sampled_from([1, 2, 200]), st.sampled_from([0, 1, 5, 7])),
    st.tuples(st.just("redrive"), st.integers(0, 30), st.none()),
    st.tuples(st.just("snooze"), st.integers(0, 3), st.sampled_from([1, 6])),
    *[st.tuples(st.just("edge"), st.tuples(st.integers(0, 2), st.sampled_from(MERCHANTS)), CENTS)] * 2,
)


class Path:
    """One wine with an alert of each kind, in the system and in the reference."""

    def __init__(self) -> None:
        self.wine: Wine = wine(f"path_{next(numbers)}")
        self.clock = NOW
        self.at = NOW - timedelta(days=100)
        self.handled = 0
        pairs = [
            (alert("100.00", wine=self.wine), Asked("price", 10_000)),
            (alert("100.00", wine=self.wine, merchant=merchant("083", "Y")), Asked("price", 10_000, only="083")),
            (alert(None, wine=self.wine, kind="low"), Asked("low")),
            (alert(None, wine=self.wine, kind="back"), Asked("back")),
        ]
        self.alerts = [real for real, _ in pairs]
        self.reference = Reference([asked for _, asked in pairs])

    def take(self, step: tuple[Any, Any, Any]) -> None:
        kind, one, two = step
        self.at += timedelta(minutes=1)
        self.clock += timedelta(minutes=1)
        acts: dict[str, Callable[[], object]] = {
            "price": lambda: self._observe(one, two, self.at),
            "seen": lambda: (self._observe(one, two, self.at), self.handle(batch=200, hours=0)),
            "late": lambda: self._observe(one, two, self.at - timedelta(days=50)),
            "leave": lambda: availability.withdraw(
                merchant=_shop(one), wine_ids=[self.wine.pk], at=self.at, why="gone", now=self.clock
            ),
            "handle": lambda: self.handle(batch=one, hours=two),
            "redrive": lambda: self._redrive(one),
            "snooze": lambda: self._snooze(one, two),
            "edge": lambda: self._at_the_edge(*one, two),
        }
        acts[kind]()

    def _observe(self, shop: str, cents: int, at: datetime) -> None:
        if at < self.at and not Offer.objects.filter(wine=self.wine, merchant=_shop(shop)).exists():
            return  # the first price of a merchant is never late
        seen = Observation(self.wine.pk, Decimal(cents) / 100, at)
        record_observations(merchant=_shop(shop), observations=[seen], attributes={}, now=self.clock)

    def handle(self, *, batch: int, hours: int) -> None:
        self.clock += timedelta(hours=hours)
        fresh = list(self._log()[self.handled :])
        self.handled += len(fresh)
        # A return at another price is told by its price; both are one to the reference.
        events = [_seen(each) for each in fresh if "price_event_id" not in each.body]
        newest = {
            offer.merchant_id.removeprefix("mch_"): offer.event_id
            for offer in Offer.objects.filter(wine=self.wine, withdrawn_at__isnull=True)
        }
        self.reference.look(events, newest, self.clock)
        control.limit(name="alert-matching", batch=batch)
        self._drain()

    def _drain(self) -> None:
        drain(["price-history"])
        with patch.object(matching, "timezone", SimpleNamespace(now=lambda: self.clock)):
            drain(["alert-matching"])

    def _redrive(self, which: int) -> None:
        handled = list(self._log()[: self.handled])
        if not handled:
            return
        again = handled[which % len(handled)]
        ProcessedMessage.objects.filter(event_id=again.event_id, consumer_name="alert-matching").delete()
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
                " SELECT id, 0, %s, %s, %s, %s FROM jobs_subscription WHERE name = 'alert-matching'",
                [again.id, again.published_at, again.event_id, again.key],
            )
        self.handle(batch=200, hours=0)

    def _snooze(self, which: int, hours: int) -> None:
        until = self.clock + timedelta(hours=hours)
        Alert.objects.filter(pk=self.alerts[which].pk).update(snoozed_until=until)
        self.reference.alerts[which].asleep_until = until

    def _at_the_edge(self, which: int, shop: str, cents: int) -> None:
        """All is dear for once, and then somebody asks this at the very moment when a silence of the alert's ends."""
        asked = self.reference.alerts[which]
        ends = [asked.when + QUIET] if asked.when else []
        ends += [asked.asleep_until] if asked.asleep_until else []
        for number in MERCHANTS:
            self._observe(number, DEAR, self.at)
        self.handle(batch=200, hours=0)
        self.clock = min([end for end in ends if end > self.clock], default=self.clock)
        self.at += timedelta(minutes=1)
        self._observe(shop, cents, self.at)
        self.handle(batch=200, hours=0)

    def _log(self) -> Any:
        types = ["wine.price_changed", "wine.offer_withdrawn", "wine.offer_returned"]
        return LoggedMessage.objects.filter(key=self.wine.pk, type__in=types).order_by("id")

    def compare(self) -> None:
        for real, asked in zip(self.alerts, self.reference.alerts, strict=True):
            mails = list(Notification.objects.filter(alert=real).order_by("id").values_list("event_id", flat=True))
            assert mails == asked.mails, real.kind
            real.refresh_from_db()
            assert (real.state == "fired") == asked.told, real.kind
            decided = list(Decision.objects.filter(alert=real, outcome="mailed").order_by("id"))
            assert [decision.event_id for decision in decided] == mails


def _shop(number: str) -> Merchant:
    return merchant(number, {"082": "X", "083": "Y"}[number])


def _seen(message: Any) -> Seen:
    cents = message.body.get("new_price_usd", message.body.get("price_usd"))
    gone = message.type == "wine.offer_withdrawn"
    return Seen(
        message.event_id,
        message.body["merchant_id"].removeprefix("mch_"),
        None if gone else int(Decimal(str(cents)) * 100),
        again=message.type == "wine.offer_returned",
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(steps=st.lists(STEPS, min_size=8, max_size=24))
def test_alerts_say_what_the_reference_says_on_any_path(steps: list[tuple[Any, Any, Any]]) -> None:
    with patch("django.conf.settings.ALERT_COOLDOWN", QUIET):
        path = Path()
        for step in steps:
            path.take(step)
        path.handle(batch=200, hours=0)
        path.compare()
    control.limit(name="alert-matching", batch=None)
