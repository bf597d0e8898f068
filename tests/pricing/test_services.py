from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from pricing.events import LATE_PRICE_OBSERVED, PRICE_CHANGED
from pricing.models import HeldPrice, Offer
from pricing.rules import Verdict
from pricing.services import UnknownWineError, record_observations
from tests import cast
from tests.cast import NOW
from tests.pricing.observed import make_offer, published, seen

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


def record(merchant, *observations, attributes=None, **options):
    return record_observations(
        merchant=merchant, observations=observations, attributes=attributes or {}, now=NOW + 24 * HOUR, **options
    )


def test_the_first_price_makes_an_offer_and_an_event_without_an_old_price(merchant, wine):
    [outcome] = record(merchant, seen("189.00"), attributes={"request_id": "req_1"})
    offer = Offer.objects.get()
    assert outcome.verdict is Verdict.APPLIED
    assert (offer.price_usd, offer.occurred_at, offer.seen_at) == (Decimal("189.00"), NOW, NOW)
    assert (offer.event_id, offer.updated_at) == (outcome.event_id, NOW + 24 * HOUR)
    [message] = published()
    assert (message["type"], message["key"], message["event_id"]) == (PRICE_CHANGED, wine.id, outcome.event_id)
    assert message["attributes"] == {"request_id": "req_1"}
    assert message["body"] == {
        "event_id": outcome.event_id,
        "type": PRICE_CHANGED,
        "occurred_at": "2026-03-14T09:12:04Z",
        "wine_id": wine.id,
        "wine_name": "Ch. Montrose 2016",
        "merchant_id": merchant.id,
        "old_price_usd": None,
        "new_price_usd": Decimal("189.00"),
        "currency": "USD",
    }


def test_a_new_price_replaces_the_offer_and_names_the_old_one(merchant, wine):
    make_offer(merchant, wine, "189.00")
    record(merchant, seen("154.00", NOW + HOUR))
    offer = Offer.objects.get()
    assert (offer.price_usd, offer.occurred_at) == (Decimal("154.00"), NOW + HOUR)
    [message] = published()
    assert (message["body"]["old_price_usd"], message["body"]["new_price_usd"]) == (
        Decimal("189.00"),
        Decimal("154.00"),
    )


def test_the_same_price_again_is_no_event_but_was_seen(merchant, wine):
    before = make_offer(merchant, wine, "189.00")
    [outcome] = record(merchant, seen("189.00", NOW + HOUR))
    offer = Offer.objects.get()
    assert (outcome.verdict, outcome.event_id) == (Verdict.UNCHANGED, None)
    assert (offer.seen_at, offer.occurred_at, offer.event_id) == (NOW + HOUR, NOW, "evt_first")
    assert offer.updated_at == before.updated_at
    assert published() == []


def test_a_late_price_is_published_as_late_and_leaves_the_offer_alone(merchant, wine):
    make_offer(merchant, wine, "189.00")
    before = Offer.objects.values().get()
    [outcome] = record(merchant, seen("160.00", NOW - HOUR))
    assert outcome.verdict is Verdict.STALE
    assert Offer.objects.values().get() == before
    [message] = published()
    assert (message["type"], message["event_id"]) == (LATE_PRICE_OBSERVED, outcome.event_id)
    assert message["body"]["new_price_usd"] == Decimal("160.00")


def test_a_price_from_before_the_last_confirmation_does_not_undo_it(merchant, wine):
    make_offer(merchant, wine, "189.00")
    record(merchant, seen("189.00", NOW + 2 * HOUR))
    [outcome] = record(merchant, seen("160.00", NOW + HOUR))
    assert outcome.verdict is Verdict.STALE
    assert Offer.objects.get().price_usd == Decimal("189.00")


def test_a_jump_is_held_for_a_person_and_announced_to_nobody(merchant, wine):
    make_offer(merchant, wine, "189.00")
    [outcome] = record(merchant, seen("18900.00", NOW + HOUR))
    assert (outcome.verdict, outcome.event_id) == (Verdict.HELD, None)
    held = HeldPrice.objects.get()
    assert (held.price_usd, held.last_price_usd, held.occurred_at) == (Decimal(18900), Decimal(189), NOW + HOUR)
    assert Offer.objects.get().price_usd == Decimal("189.00")
    assert published() == []


def test_a_feed_that_repeats_a_suspect_price_every_night_is_held_once(merchant, wine):
    make_offer(merchant, wine, "189.00")
    for night in range(1, 4):
        record(merchant, seen("18900.00", NOW + night * HOUR))
    record(merchant, seen("18900.00", NOW + 5 * HOUR), seen("18900.00", NOW + 6 * HOUR), seen("0.10", NOW + 7 * HOUR))
    assert sorted(HeldPrice.objects.values_list("price_usd", flat=True)) == [Decimal("0.10"), Decimal(18900)]


def test_one_wine_twice_in_a_batch_is_judged_in_the_order_of_time(merchant, wine):
    outcomes = record(merchant, seen("150.00", NOW + 2 * HOUR), seen("160.00", NOW + HOUR), seen("189.00", NOW))
    assert [outcome.verdict for outcome in outcomes] == [Verdict.APPLIED] * 3
    bodies = [message["body"] for message in published()]
    assert [(body["old_price_usd"], body["new_price_usd"]) for body in bodies] == [
        (None, Decimal("189.00")),
        (Decimal("189.00"), Decimal("160.00")),
        (Decimal("160.00"), Decimal("150.00")),
    ]
    assert [message["event_id"] for message in published()] == [o.event_id for o in reversed(outcomes)]
    assert Offer.objects.get().price_usd == Decimal("150.00")


def test_of_two_prices_with_one_time_the_first_in_the_batch_stays(merchant, wine):
    outcomes = record(merchant, seen("150.00"), seen("160.00"))
    assert [outcome.verdict for outcome in outcomes] == [Verdict.APPLIED, Verdict.STALE]
    assert Offer.objects.get().price_usd == Decimal("150.00")


def test_merchants_do_not_see_each_others_offers(merchant, wine):
    other = cast.merchant("083", "Merchant Y")
    make_offer(other, wine, "100.00", NOW + HOUR)
    [outcome] = record(merchant, seen("5000.00", NOW))
    assert outcome.verdict is Verdict.APPLIED
    assert published()[0]["body"]["old_price_usd"] is None
    assert Offer.objects.get(merchant=other).price_usd == Decimal("100.00")


@pytest.mark.parametrize("retired", [False, True])
def test_an_unknown_or_retired_wine_refuses_the_whole_batch_and_names_the_observation(merchant, wine, retired):
    if retired:
        cast.wine("1", retired_at=NOW)
    with pytest.raises(UnknownWineError) as refusal:
        record(merchant, seen("154.00"), seen("154.00", wine_id="wn_1"))
    assert (refusal.value.index, refusal.value.wine_id) == (1, "wn_1")
    assert not Offer.objects.exists()
    assert published() == []


def test_offers_and_messages_are_committed_together_or_not_at_all(merchant, wine, monkeypatch):
    def fails(messages):
        raise ZeroDivisionError

    monkeypatch.setattr("pricing.services.outbox.publish", fails)
    with pytest.raises(ZeroDivisionError):
        record(merchant, seen("189.00"))
    assert not Offer.objects.exists()


def test_the_wines_are_locked_before_the_offers_are_read_and_any_message_id_is_drawn(merchant, wine):
    with CaptureQueriesContext(connection) as queries:
        record(merchant, seen("189.00"))
    statements = [query["sql"] for query in queries]
    [lock] = [n for n, sql in enumerate(statements) if "ORDER BY id FOR NO KEY UPDATE" in sql]
    [read] = [n for n, sql in enumerate(statements) if sql.startswith("SELECT") and "FROM pricing_offer" in sql]
    [draw] = [n for n, sql in enumerate(statements) if "INSERT INTO jobs_message" in sql]
    assert lock < read < draw


def test_a_thousand_observations_cost_a_handful_of_statements(merchant):
    for number in range(1000):
        cast.wine(str(number))
    observations = [seen("189.00", NOW + HOUR, f"wn_{number}") for number in range(1000)]
    with CaptureQueriesContext(connection) as queries:
        record(merchant, *observations)
    assert len(published()) == 1000
    work = [query["sql"] for query in queries if query["sql"] not in ("BEGIN", "COMMIT")]
    assert len(work) == 4, [sql[:80] for sql in work]  # lock the wines, read the offers, write them, publish

    mixed = [seen("189.00", NOW + 2 * HOUR, f"wn_{number}") for number in range(300)]
    mixed += [seen("1.00", NOW + 2 * HOUR, f"wn_{number}") for number in range(300, 600)]
    mixed += [seen("150.00", NOW, f"wn_{number}") for number in range(600, 800)]
    mixed += [seen("150.00", NOW + 2 * HOUR, f"wn_{number}") for number in range(800, 1000)]
    with CaptureQueriesContext(connection) as queries:
        record(merchant, *mixed)
    work = [query["sql"] for query in queries if query["sql"] not in ("BEGIN", "COMMIT")]
    assert len(work) == 6, [sql[:80] for sql in work]  # and look for held prices, and write them
    assert HeldPrice.objects.count() == 300
    assert len(published()) == 1400


def test_inside_a_callers_transaction_nothing_is_visible_before_its_commit(merchant, wine):
    class UndoneError(Exception):
        pass

    with pytest.raises(UndoneError), transaction.atomic():
        record(merchant, seen("189.00"))
        raise UndoneError
    assert not Offer.objects.exists()
    assert published() == []
