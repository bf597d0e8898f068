"""Offers that end and return: what stands, what is announced, and what listings have to do with it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection

from pricing import availability, listings
from pricing.events import LATE_PRICE_OBSERVED, OFFER_RETURNED, OFFER_WITHDRAWN, PRICE_CHANGED
from pricing.models import HeldPrice, Listing, Offer
from pricing.rules import Verdict
from pricing.selectors import cheapest_offers
from pricing.services import record_observations
from tests import cast
from tests.cast import NOW
from tests.pricing.observed import make_offer, published, seen
from tests.pricing.test_listings import GOOD, VAGUE, ask, settle, take

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


def withdraw(merchant, *wine_ids, hours=1.0, why="deleted"):
    return availability.withdraw(
        merchant=merchant,
        wine_ids=wine_ids or ["wn_4417"],
        at=NOW + hours * HOUR,
        why=why,
        now=NOW + 24 * HOUR,
        attributes={"request_id": "r"},
    )


def record(merchant, price, hours):
    [outcome] = record_observations(
        merchant=merchant, observations=[seen(price, NOW + hours * HOUR)], attributes={}, now=NOW + 24 * HOUR
    )
    return outcome


def types():
    return [message["type"] for message in published()]


def offered():
    """Wines offered now, by any merchant."""
    return [
        (offer.wine_id, str(offer.price_usd)) for offer in cheapest_offers(Offer.objects.values_list("wine", flat=True))
    ]


def test_what_is_withdrawn_is_no_offer_any_more_and_that_is_a_fact_of_its_own(merchant, wine):
    make_offer(merchant, wine, "189.00")
    assert withdraw(merchant) == [wine.pk]
    offer = Offer.objects.get()
    assert (offer.withdrawn_at, str(offer.price_usd)) == (NOW + HOUR, "189.00")
    assert offered() == []
    [message] = published()
    assert (message["type"], message["key"], message["attributes"]) == (OFFER_WITHDRAWN, wine.pk, {"request_id": "r"})
    assert message["body"] == {
        "event_id": message["event_id"],
        "type": OFFER_WITHDRAWN,
        "occurred_at": "2026-03-14T10:12:04Z",
        "wine_id": wine.pk,
        "wine_name": "Ch. Montrose 2016",
        "merchant_id": merchant.pk,
        "price_usd": offer.price_usd,
        "currency": "USD",
        "why": "deleted",
    }


def test_withdrawn_again_it_is_no_news_and_what_was_never_offered_is_none(merchant, wine):
    assert withdraw(merchant) == []
    make_offer(merchant, wine)
    withdraw(merchant)
    assert withdraw(merchant, hours=2) == []
    assert types() == [OFFER_WITHDRAWN]


def test_a_late_withdrawal_loses_against_a_newer_price(merchant, wine):
    make_offer(merchant, wine, "189.00")
    record(merchant, "189.00", 2)  # unchanged, and confirmed
    assert withdraw(merchant, hours=1) == []
    assert offered() == [(wine.pk, "189.00")]
    assert published() == []


def test_a_return_at_the_same_price_is_no_price_change(merchant, wine):
    make_offer(merchant, wine, "189.00")
    withdraw(merchant)
    outcome = record(merchant, "189.00", 2)
    assert outcome.verdict is Verdict.RETURNED
    assert types() == [OFFER_WITHDRAWN, OFFER_RETURNED]
    offer = Offer.objects.get()
    assert (offer.withdrawn_at, offer.occurred_at, offer.event_id) == (None, NOW + 2 * HOUR, outcome.event_id)
    assert offered() == [(wine.pk, "189.00")]


def test_a_return_at_another_price_is_a_price_change_too(merchant, wine):
    make_offer(merchant, wine, "189.00")
    withdraw(merchant)
    outcome = record(merchant, "154.00", 2)
    assert outcome.verdict is Verdict.APPLIED
    assert types() == [OFFER_WITHDRAWN, PRICE_CHANGED, OFFER_RETURNED]
    changed, returned = published()[1:]
    assert returned["body"]["price_event_id"] == changed["event_id"] == outcome.event_id == Offer.objects.get().event_id
    assert returned["body"]["price_usd"] == changed["body"]["new_price_usd"]
    assert offered() == [(wine.pk, "154.00")]


def test_a_price_from_before_the_withdrawal_is_late_and_brings_nothing_back(merchant, wine):
    make_offer(merchant, wine, "189.00")
    withdraw(merchant, hours=2)
    assert record(merchant, "154.00", 1).verdict is Verdict.STALE
    assert record(merchant, "189.00", 1.5).verdict is Verdict.UNCHANGED
    assert types() == [OFFER_WITHDRAWN, LATE_PRICE_OBSERVED]
    assert offered() == []


def test_a_return_at_a_price_that_jumps_is_held_and_stays_away(merchant, wine):
    make_offer(merchant, wine, "189.00")
    withdraw(merchant)
    assert record(merchant, "18900.00", 2).verdict is Verdict.HELD
    assert offered() == []


def test_it_is_set_wise_and_touches_one_merchant_alone(merchant, wine, django_assert_num_queries):
    wines = [wine, *(cast.wine(str(number)) for number in range(30))]
    other = cast.merchant("083", "Merchant Y")
    for bottle in wines:
        make_offer(merchant, bottle)
    make_offer(other, wine, "200.00")
    with django_assert_num_queries(6):  # begin, lock the wines, read, write, publish, commit
        gone = withdraw(merchant, *(bottle.pk for bottle in wines), "wn_unknown")
    assert gone == sorted(bottle.pk for bottle in wines)
    assert offered() == [(wine.pk, "200.00")]


def test_prices_and_withdrawals_of_the_same_wines_at_once_never_deadlock(merchant):
    wines = [cast.wine(str(number)) for number in range(6)]
    for bottle in wines:
        make_offer(merchant, bottle)
    rounds, together = 15, threading.Barrier(4)
    ids = [bottle.pk for bottle in wines]

    def work(number):
        try:
            for turn in range(rounds):
                together.wait(60)
                at = turn * 4 + number
                order = ids if (turn + number) % 2 else ids[::-1]
                if number % 2:
                    withdraw(merchant, *order, hours=at)
                else:
                    observations = [seen(f"{100 + at}.00", NOW + at * HOUR, wine_id) for wine_id in order]
                    record_observations(merchant=merchant, observations=observations, attributes={}, now=NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work, number) for number in range(4)]:
            done.result(timeout=120)
    last_said = {(offer.withdrawn_at is not None, offer.seen_at) for offer in Offer.objects.all()}
    assert last_said == {(True, NOW + 59 * HOUR)}


# --- Listings ---------------------------------------------------------------------------------------------------


def go(merchant, gone, *asks, minutes=10):
    return listings.record(
        merchant=merchant, asks=asks, attributes={}, now=NOW, gone=gone, gone_at=NOW + timedelta(minutes=minutes)
    )


def whys():
    return [message["body"]["why"] for message in published() if message["type"] == OFFER_WITHDRAWN]


def test_a_listing_that_goes_takes_the_offer_with_it(merchant, wine):
    take(merchant, ask())
    go(merchant, "v1")
    assert offered() == []
    assert (Offer.objects.get().withdrawn_at, whys()) == (NOW + timedelta(minutes=10), ["gone"])
    assert take(merchant, ask(minutes=11))[0].outcome.verdict is Verdict.RETURNED
    assert offered() == [(wine.pk, "189.00")]


@pytest.mark.parametrize(("change", "why"), [({"price": None}, "no price"), ({"in_stock": False}, "out of stock")])
def test_so_does_one_without_a_price_or_out_of_stock(merchant, wine, change, why):
    take(merchant, ask())
    take(merchant, ask(minutes=1, **change))
    assert (offered(), whys()) == ([], [why])
    take(merchant, ask(minutes=2, **change))
    assert len(whys()) == 1


def test_a_late_word_that_it_is_gone_takes_nothing_away(merchant, wine):
    take(merchant, ask(minutes=20))
    go(merchant, "v1", minutes=10)
    take(merchant, ask(minutes=10, in_stock=False))
    assert offered() == [(wine.pk, "189.00")]


def test_said_again_that_it_is_gone_counts_against_what_comes_late(merchant, wine):
    take(merchant, ask())
    go(merchant, "v1", minutes=10)
    assert go(merchant, "v1", minutes=30) == []
    take(merchant, ask(minutes=20))
    assert (offered(), Listing.objects.get().price) == ([], None)


def test_while_another_listing_of_the_wine_has_a_price_that_is_the_offer(merchant, wine):
    take(merchant, ask(price="150.00", id_="a"), ask(price="160.00", id_="b"), ask(price="155.00", id_="c"))
    go(merchant, "a")
    assert offered() == [(wine.pk, "155.00")]
    go(merchant, "c", minutes=11)
    assert offered() == [(wine.pk, "160.00")]
    go(merchant, "b", minutes=12)
    assert (offered(), whys()) == ([], ["gone"])


def test_a_listing_that_becomes_a_case_is_the_bottles_offer_no_more(merchant, wine):
    take(merchant, ask())
    take(merchant, ask("Ch. Montrose 2016 6x75cl", "900.00", minutes=1))
    assert (offered(), whys()) == ([], ["listed as something else"])
    assert not HeldPrice.objects.exists()


def test_a_listing_that_becomes_another_wine_moves_the_offer_there(merchant, wine):
    older = cast.wine("4418", vintage=2015)
    take(merchant, ask())
    take(merchant, ask("Ch. Montrose 2015 75cl", "170.00", minutes=1))
    assert offered() == [(older.pk, "170.00")]


def test_a_person_who_matches_it_otherwise_moves_the_offer_too(merchant, wine):
    older = cast.wine("4418", vintage=None)
    take(merchant, ask("Montrose rouge 75cl", "180.00"))
    settle(wine.pk)
    assert offered() == [(wine.pk, "180.00")]
    settle(older.pk)
    assert offered() == [(older.pk, "180.00")]


def test_a_listing_that_waits_or_was_set_aside_ends_no_offer(merchant, wine):
    make_offer(merchant, wine)
    take(merchant, ask(VAGUE))
    go(merchant, "v1")
    assert offered() == [(wine.pk, "189.00")]


def test_the_wine_of_a_listing_that_goes_may_be_retired(merchant, wine):
    take(merchant, ask(id_="a"), ask(id_="b"))
    type(wine).objects.update(retired_at=NOW)
    go(merchant, "a")
    go(merchant, "b", minutes=11)
    assert offered() == []


def test_of_two_listings_that_go_at_once_the_last_sees_the_other(merchant, wine):
    """Each locks its own listing, so neither sees what the other does until it has the wine."""
    for turn in range(12):
        hours = turn * 60
        take(merchant, ask(id_="a", minutes=hours + 1), ask(id_="b", minutes=hours + 1))
        together = threading.Barrier(2)

        def leave(which, together=together, hours=hours):
            try:
                together.wait(30)
                go(merchant, which, minutes=hours + 2)
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as threads:
            for done in [threads.submit(leave, which) for which in ("a", "b")]:
                done.result(timeout=60)
        assert offered() == [], turn
    assert Listing.objects.filter(price=None, title=GOOD).count() == 2
