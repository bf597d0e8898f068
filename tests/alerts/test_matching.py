"""Prices meet alerts: through the real worker code, on real Postgres."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alerts import decided
from alerts.events import ALERT_CREATED
from alerts.models import Alert, Decision, Notification
from jobs import control
from jobs.messages import NewMessage
from jobs.models import DeadLetter, Delivery, LoggedMessage, ProcessedMessage
from jobs.outbox import publish
from jobs.worker import drain
from tests.cast import alert, merchant, price, wine

pytestmark = pytest.mark.django_db(transaction=True)


def state(watch: Alert) -> str:
    watch.refresh_from_db()
    return watch.state


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Claims of one message, so that what waits behind is not in the same batch."""
    control.limit(name="alert-matching", batch=1)
    yield
    control.limit(name="alert-matching", batch=None)


def first_check(watch: Alert) -> str:
    with transaction.atomic():
        (event_id,) = publish(
            [NewMessage(ALERT_CREATED, watch.wine_id, {"alert_id": watch.pk, "wine_id": watch.wine_id})]
        )
    return event_id


def redrive_all_prices() -> None:
    """As an operator may, later than the ledger's week."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_delivery (subscription_id, part, message_id, published_at, event_id, key)"
            " SELECT s.id, 0, m.id, m.published_at, m.event_id, m.key FROM jobs_message m, jobs_subscription s"
            " WHERE s.name = 'alert-matching' AND m.type = 'wine.price_changed'"
        )
    ProcessedMessage.objects.all().delete()


def commands() -> list[dict[str, Any]]:
    return [m.body for m in LoggedMessage.objects.filter(type="send_alert_email").order_by("id")]


def test_a_price_at_or_below_the_target_fires_the_alert_and_sends_one_command() -> None:
    watch = alert("160.00")
    event = price("154.00", old="189.00")
    drain(["alert-matching"])
    assert state(watch) == "fired"
    note = Notification.objects.get()
    assert (note.alert, note.event_id, note.state) == (watch, event.event_id, "queued")
    assert (str(note.old_price), str(note.new_price), str(note.target)) == ("189.00", "154.00", "160.00")
    assert commands() == [{"notification_id": note.pk, "alert_id": watch.pk, "event_id": event.event_id}]
    decision = Decision.objects.get()
    assert (decision.outcome, decision.reason, decision.merchant_name) == ("mailed", "below your target", "Merchant X")


def test_a_price_above_the_target_changes_nothing_and_writes_nothing() -> None:
    watch = alert("160.00")
    price("161.00")
    drain(["alert-matching"])
    assert state(watch) == "armed"
    assert not Decision.objects.exists()
    assert not commands()


def test_a_fired_alert_is_silent_until_the_price_has_risen_above_the_target() -> None:
    watch = alert("160.00")
    for number, amount in enumerate(["154.00", "152.50", "165.00", "159.00"]):
        price(amount, minutes=number)
        drain(["alert-matching"])
    assert state(watch) == "fired"
    assert list(Decision.objects.order_by("id").values_list("outcome", flat=True)) == [
        "mailed",
        "not_mailed",
        "armed",
        "mailed",
    ]
    assert len(commands()) == 2


def test_a_price_that_is_no_longer_current_is_not_mailed_and_the_log_says_why() -> None:
    watch = alert("160.00")
    price("154.00")
    price("170.00", minutes=1)
    drain(["alert-matching"])
    assert state(watch) == "armed"
    assert "superseded" in Decision.objects.get().reason
    assert not commands()


def test_a_fall_after_a_rise_in_one_batch_is_one_mail_for_the_last_price() -> None:
    alert("160.00", state="fired")
    price("158.00")
    drain(["alert-matching"])
    price("170.00", minutes=1)
    last = price("150.00", minutes=2)
    drain(["alert-matching"])
    assert [c["event_id"] for c in commands()] == [last.event_id]


def test_a_price_whose_event_still_waits_does_not_decide_what_an_earlier_one_did() -> None:
    """Two merchants; the second falls while the first one's rise is still in the queue: it did rise above."""
    first, second = merchant("1", "First"), merchant("2", "Second")
    watch = alert("160.00")
    price("150.00", at=first)
    price("170.00", at=second)
    drain(["alert-matching"])
    assert state(watch) == "fired"
    price("165.00", at=first, minutes=1)
    with one_at_a_time():
        price("155.00", at=second, minutes=2)
        drain(["alert-matching"])
    assert [d.outcome for d in Decision.objects.order_by("id")] == ["mailed", "armed", "mailed"]


def test_a_first_check_that_sees_a_price_still_in_the_queue_tells_it_once() -> None:
    shop, other = merchant("1", "Shop"), merchant("2", "Other")
    price("170.00", at=shop)
    price("180.00", at=other)
    drain(["alert-matching"])
    watch = alert("160.00", state="pending")
    first_check(watch)
    price("185.00", at=other, minutes=1)
    last = price("150.00", at=shop, minutes=2)
    with one_at_a_time():
        drain(["alert-matching"])
    assert [c["event_id"] for c in commands()] == [last.event_id]


def test_another_merchants_rise_does_not_arm_an_alert_that_is_still_met() -> None:
    cheap, dear = merchant("1", "Cheap"), merchant("2", "Dear")
    watch = alert("160.00")
    price("150.00", at=cheap)
    price("170.00", at=dear)
    drain(["alert-matching"])
    price("175.00", at=dear, minutes=1)
    drain(["alert-matching"])
    assert state(watch) == "fired"
    assert len(commands()) == 1


def test_an_alert_for_one_merchant_ignores_the_others() -> None:
    mine, other = merchant("1", "Mine"), merchant("2", "Other")
    watch = alert("160.00", merchant=mine)
    price("150.00", at=other)
    drain(["alert-matching"])
    assert state(watch) == "armed"
    price("155.00", at=mine)
    drain(["alert-matching"])
    assert state(watch) == "fired"


def test_a_paused_alert_hears_nothing() -> None:
    watch = alert("160.00", state="paused")
    price("150.00")
    drain(["alert-matching"])
    assert state(watch) == "paused"
    assert not Decision.objects.exists()


def test_the_first_check_of_an_alert_already_met_tells_once() -> None:
    price("150.00")
    drain(["alert-matching"])
    watch = alert("160.00", state="pending")
    event_id = first_check(watch)
    drain(["alert-matching"])
    assert state(watch) == "fired"
    assert [c["event_id"] for c in commands()] == [event_id]
    assert Decision.objects.get().reason == "first check: already at or below your target"


def test_the_first_check_of_an_alert_not_met_arms_it() -> None:
    price("170.00")
    watch = alert("160.00", state="pending")
    first_check(watch)
    drain(["alert-matching"])
    assert state(watch) == "armed"
    assert not commands()


def test_a_first_check_of_a_deleted_alert_is_acked() -> None:
    watch = alert("160.00", state="pending")
    first_check(watch)
    watch.delete()
    drain(["alert-matching"])
    assert not Delivery.objects.filter(subscription__name="alert-matching").exists()
    assert not DeadLetter.objects.exists()


def test_one_price_fires_every_alert_it_meets_and_no_other() -> None:
    met = [alert(target, owner=owner) for owner, target in [("alice", "160.00"), ("bob", "154.00"), ("bob", "200.00")]]
    missed = [alert("153.99"), alert("500.00", wine=wine("1"))]
    price("154.00")
    drain(["alert-matching"])
    assert [state(a) for a in met] == ["fired"] * 3
    assert [state(a) for a in missed] == ["armed"] * 2
    assert {c["alert_id"] for c in commands()} == {a.pk for a in met}


@pytest.mark.publishes_malformed_events
def test_the_courses_malformed_event_is_a_dead_letter_that_says_what_is_wrong() -> None:
    """The seed's poison message: no new_price_usd, and a currency with a trailing space."""
    body = json.loads(
        '{"event_id": "evt_9f31", "type": "wine.price_changed", "occurred_at": "2026-03-14T09:12:04Z",'
        ' "wine_id": "wn_4417", "wine_name": "Ch. Montrose 2016", "merchant_id": "mch_082",'
        ' "old_price_usd": 189.00, "currency": "USD "}'
    )
    with transaction.atomic():
        publish([NewMessage("wine.price_changed", "wn_4417", body, event_id="evt_9f31")])
    drain()
    letters = DeadLetter.objects.order_by("subscription_name")
    assert [(d.subscription_name, d.receive_count, d.cause) for d in letters] == [
        ("alert-matching", 1, "permanent"),
        ("analytics-rollup", 1, "permanent"),
        ("price-history", 1, "permanent"),
    ]
    assert {d.reason for d in letters} == {"new_price_usd required; currency 'USD ' not ISO-4217"}


def test_what_the_ledger_has_forgotten_is_still_mailed_once() -> None:
    """A redrive later than the ledger's week: the schema's own rule of one mail per alert and event holds."""
    alert("160.00")
    price("154.00")
    drain(["alert-matching"])
    Alert.objects.update(state="armed")
    redrive_all_prices()
    drain(["alert-matching"])
    assert len(commands()) == 1
    assert not DeadLetter.objects.exists()


def test_alerts_that_are_judged_as_one_differ_in_what_the_ledger_has_forgotten() -> None:
    """One was told of the price before; the other, alike in all that the rules look at, was not."""
    told = alert("160.00", owner="alice")
    price("154.00")
    drain(["alert-matching"])
    untold = alert("160.00", owner="bob")
    Alert.objects.update(state="armed", last_notified_at=None, last_notified_price=None)
    redrive_all_prices()
    drain(["alert-matching"])
    assert [c["alert_id"] for c in commands()] == [told.pk, untold.pk]
    assert not DeadLetter.objects.exists()


def test_alerts_that_are_judged_as_one_have_each_its_own_first_check() -> None:
    price("154.00")
    drain(["alert-matching"])
    watches = [alert("160.00", state="pending", owner=owner) for owner in ("alice", "bob")]
    events = [first_check(watch) for watch in watches]
    drain(["alert-matching"])
    decisions = Decision.objects.order_by("id").values_list("alert_id", "event_id")
    assert list(decisions) == [(watch.pk, event) for watch, event in zip(watches, events, strict=True)]


def test_what_an_event_has_decided_for_many_does_not_slow_the_chunks_that_follow() -> None:
    """The planner would rather go by the event, of which it expects few decisions, and read them all each time."""
    watch = alert()
    price("154.00")
    drain(["alert-matching"])
    (event_id,) = Decision.objects.values_list("event_id", flat=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO alerts_alert (user_id, wine_id, target, state)"
            " SELECT user_id, wine_id, target, 'armed' FROM alerts_alert, generate_series(1, 2000) WHERE id = %s",
            [watch.pk],
        )
        cursor.execute(
            "INSERT INTO alerts_decision (alert_id, event_id, outcome, reason, price, merchant_name, decided_at)"
            " SELECT id, %s, 'not_mailed', '', 154, '', now() FROM alerts_alert WHERE id <> %s",
            [event_id, watch.pk],
        )
        cursor.execute("ANALYZE alerts_decision")
        asked = {"alerts": list(Alert.objects.values_list("pk", flat=True)[:500]), "events": [event_id]}
        cursor.execute("EXPLAIN " + decided.KNOWN, asked)
        plan = "\n".join(line for (line,) in cursor.fetchall())
        cursor.execute(decided.KNOWN, asked)
        assert len(cursor.fetchall()) == 500
        cursor.execute("EXPLAIN " + decided.AGAIN, asked)
        again = "\n".join(line for (line,) in cursor.fetchall())
    assert "alerts_decision_identity" in plan
    assert "alerts_decision_event" not in plan
    assert "Index Only Scan using alerts_decision_event" in again
    assert "Seq Scan" not in again


def test_a_batch_costs_the_same_number_of_queries_whatever_its_size() -> None:
    def cost(events: int) -> int:
        for number in range(events):
            bottle = wine(f"{events}_{number}")
            alert("160.00", wine=bottle)
            price("150.00", of=bottle)
        with CaptureQueriesContext(connection) as queries:
            drain(["alert-matching"])
        claims = sum("FOR UPDATE SKIP LOCKED" in (q["sql"] or "") for q in queries)
        return round(len(queries) / claims)

    assert cost(60) <= cost(4) + 2
