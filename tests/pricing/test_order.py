"""Two merchants write the price of one wine at the same time: message ids ascend in the order of commits."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction

from pricing.models import Offer
from pricing.services import record_observations
from tests import cast
from tests.cast import NOW
from tests.pricing.observed import published, seen

pytestmark = pytest.mark.django_db(transaction=True)
DEADLINE = 20.0


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"waited in vain for: {what}"
        time.sleep(0.01)


def waiting_for_a_lock() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone()[0]


class Writer(threading.Thread):
    """Records an observation in a transaction of its own, and commits when told to."""

    def __init__(self, merchant, *observations) -> None:
        super().__init__(daemon=True)
        self.merchant, self.observations = merchant, observations
        self.recorded, self.may_commit = threading.Event(), threading.Event()
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            with transaction.atomic():
                record_observations(
                    merchant=self.merchant, observations=self.observations, attributes={}, now=NOW + timedelta(days=1)
                )
                self.recorded.set()
                assert self.may_commit.wait(DEADLINE)
        except BaseException as error:
            self.failure = error
        finally:
            connection.close()

    def finish(self) -> None:
        self.may_commit.set()
        self.join(DEADLINE)
        assert not self.is_alive()
        if self.failure:
            raise self.failure


def test_the_second_writer_of_a_wine_draws_its_message_id_after_the_first_has_committed(merchant, wine):
    first = Writer(merchant, seen("189.00"))
    assert first.recorded.wait(DEADLINE)
    second = Writer(cast.merchant("083", "Merchant Y"), seen("150.00"))
    until(lambda: waiting_for_a_lock() == 1, "the second writer to wait for the wine")
    assert not second.recorded.is_set()
    first.finish()
    second.finish()
    assert [message["body"]["merchant_id"] for message in published()] == ["mch_082", "mch_083"]


def test_the_second_writer_of_an_offer_sees_what_the_first_committed_while_it_waited(merchant, wine):
    first = Writer(merchant, seen("189.00"))
    assert first.recorded.wait(DEADLINE)
    second = Writer(merchant, seen("150.00", NOW + timedelta(minutes=1)))
    until(lambda: waiting_for_a_lock() == 1, "the second writer to wait for the wine")
    first.finish()
    second.finish()
    assert published()[1]["body"]["old_price_usd"] == Decimal("189.00")
    assert Offer.objects.get().price_usd == Decimal("150.00")


def test_writers_of_different_wines_do_not_wait_for_each_other(merchant, wine):
    cast.wine("1")
    first = Writer(merchant, seen("189.00"))
    assert first.recorded.wait(DEADLINE)
    second = Writer(merchant, seen("150.00", wine_id="wn_1"))
    assert second.recorded.wait(DEADLINE)
    second.finish()
    first.finish()
    assert len(published()) == 2


def test_batches_in_opposite_order_do_not_deadlock(merchant, wine):
    numbers = [str(number) for number in range(30)]
    for number in numbers:
        cast.wine(number)
    other = cast.merchant("083", "Merchant Y")
    for turn in range(5):
        at = NOW + timedelta(minutes=turn)
        up = Writer(merchant, *[seen(f"{100 + turn}.00", at, f"wn_{number}") for number in numbers])
        down = Writer(other, *[seen(f"{200 + turn}.00", at, f"wn_{number}") for number in reversed(numbers)])
        up.may_commit.set()
        down.finish()
        up.finish()
    assert len(published()) == 2 * 5 * 30
