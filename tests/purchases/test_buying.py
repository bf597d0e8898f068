"""Buying under pressure: many at once, twice by accident, at a price that has changed; and the reservation's end."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Barrier
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from tests import cast
from tests.purchases.cast import buy, buyer, check_books, state_of, stock, upkeep_now, work
from winecellar.demo.payments_api import PaymentServer
from winecellar.purchases.models import Purchase, StockItem
from winecellar.purchases.rules import State
from winecellar.purchases.services import BuyRefusedError, PriceChangedError, TooFewError

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "0123456789abcdef" * 2


def at_once(count: int, call: Any) -> list[Any]:
    """Each call in a thread and on a connection of its own; what it returns, or the error it raises."""
    together = Barrier(20)

    def run(number: int) -> Any:
        together.wait(60)
        try:
            return call(number)
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as threads:
        return [done.result(timeout=120) for done in [threads.submit(run, n) for n in range(count)]]


def test_200_buyers_of_50_bottles_get_50_and_150_are_told_so(provider: PaymentServer) -> None:
    item = stock(50)
    people = [buyer(provider, f"p{n}") for n in range(200)]
    ends = at_once(200, lambda n: buy(people[n], item))
    assert Counter(type(end) for end in ends) == {Purchase: 50, TooFewError: 150}
    assert {str(end) for end in ends if isinstance(end, TooFewError)} == {
        "All bottles are sold or reserved now. Nothing was bought."
    }
    work()
    assert Counter(Purchase.objects.values_list("state", flat=True)) == {State.COMPLETED: 50}
    check_books(provider, bottles={item.pk: 50})


def test_one_form_sent_twenty_times_at_once_is_one_purchase(provider: PaymentServer) -> None:
    item = stock(50)
    user = buyer(provider)
    ends = at_once(20, lambda _: buy(user, item, token=TOKEN))
    assert {end.pk for end in ends} == {Purchase.objects.get().pk}
    assert StockItem.objects.get().reserved == 1


def test_reservations_that_run_out_while_their_charges_come_in_oversell_nothing(provider: PaymentServer) -> None:
    """The minute's job and the workers at the same purchases at once: each bottle is sold once or not at all."""
    item = stock(20)
    for n in range(20):
        buy(buyer(provider, f"p{n}"), item)
    Purchase.objects.update(reserved_until=timezone.now() - timedelta(seconds=1))
    at_once(20, lambda n: work() if n % 2 else upkeep_now())
    work(waits=True)
    assert set(Purchase.objects.values_list("state", flat=True)) <= {State.COMPLETED, State.RELEASED, State.REFUNDED}
    check_books(provider, bottles={item.pk: 20})


def test_another_price_than_the_one_confirmed_is_never_charged(provider: PaymentServer) -> None:
    item = stock(5, "154.00")
    user = buyer(provider)
    stock(5, "149.00")
    with pytest.raises(PriceChangedError) as cheaper:
        buy(user, item)
    assert cheaper.value.price == Decimal("149.00")
    stock(5, "154.00", currency="EUR")
    with pytest.raises(PriceChangedError):
        buy(user, item)
    assert not Purchase.objects.exists()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"quantity": 0}, "Buy 1 to 12 bottles"),
        ({"quantity": 13}, "Buy 1 to 12 bottles"),
        ({"quantity": 6}, "Only 5 bottles are left"),
        ({"token": "x"}, "not complete"),
    ],
)
def test_what_cannot_be_bought_is_refused_in_words(provider: PaymentServer, given: dict[str, Any], says: str) -> None:
    item = stock(5)
    with pytest.raises(BuyRefusedError, match=says):
        buy(buyer(provider), item, **given)
    assert StockItem.objects.get().reserved == 0


def test_nobody_reserves_a_shop_empty(provider: PaymentServer, settings: Any) -> None:
    item, user = stock(12), buyer(provider)
    for _ in range(settings.PURCHASES_AT_ONCE):
        buy(user, item)
    with pytest.raises(BuyRefusedError, match="3 of your purchases are not paid yet"):
        buy(user, item)
    work()
    buy(user, item)


def test_without_a_card_or_of_a_retired_wine_nothing_is_bought(provider: PaymentServer) -> None:
    item = stock(5)
    with pytest.raises(BuyRefusedError, match="Add a card"):
        buy(cast.person("bob"), item)
    type(item.wine).objects.update(retired_at=timezone.now())
    with pytest.raises(BuyRefusedError, match="no longer listed"):
        buy(buyer(provider), item)


def test_what_is_reserved_cannot_be_taken_out_of_the_stock(provider: PaymentServer) -> None:
    purchase = buy(buyer(provider), stock(5), 3)
    with pytest.raises(ValidationError):
        stock(2)
    stock(3)
    work()
    assert state_of(purchase) is State.COMPLETED
    assert StockItem.objects.get().on_hand == 0
