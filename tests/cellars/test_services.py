"""What people do with bottles: counted right, in one's own cellar only, also in two windows at once."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection

from pricing.matching import By
from tests.cast import person, wine
from tests.cellars.cast import NIGHT, SLOT, bottle, cellar
from winecellar.cellars import services
from winecellar.cellars.models import Bottle, Cellar, Consumption

pytestmark = pytest.mark.django_db


def consume(one: Bottle, quantity: int, *, by: Cellar | None = None) -> Consumption:
    return services.consume(
        cellar=by or one.cellar, bottle_id=one.pk, quantity=quantity, how="drunk", on=NIGHT, note="", now=SLOT
    )


def move(one: Bottle, quantity: int, *, by: Cellar | None = None) -> Bottle:
    return services.move(
        cellar=by or one.cellar, bottle_id=one.pk, quantity=quantity, location="Attic", bin="2", now=SLOT
    )


def test_a_person_has_one_cellar() -> None:
    first = services.cellar_of(user_id=person().pk, now=SLOT)
    assert services.cellar_of(user_id=person().pk, now=SLOT) == first


def test_what_is_drunk_leaves_the_cellar_and_can_be_taken_back() -> None:
    one = bottle(quantity=3)
    gone = consume(one, 2)
    one.refresh_from_db()
    assert (one.quantity, one.changed_at) == (1, SLOT)
    services.give_back(cellar=one.cellar, consumption_id=gone.pk, now=SLOT)
    one.refresh_from_db()
    assert one.quantity == 3
    assert not Consumption.objects.exists()


@pytest.mark.parametrize("quantity", [0, 4, -1])
def test_no_more_is_drunk_or_moved_than_is_there(quantity: int) -> None:
    one = bottle(quantity=3)
    for act in (consume, move):
        with pytest.raises(services.RefusedError, match="from 1 to 3"):
            act(one, quantity)
    one.refresh_from_db()
    assert (one.quantity, one.location) == (3, "")


def test_all_bottles_move_in_place_and_some_of_them_get_a_row_of_their_own() -> None:
    one = bottle(wine(), quantity=3, paid="20", keys=["inventory:1", "inventory:2", "inventory:3"])
    part = move(one, 1)
    one.refresh_from_db()
    assert (one.quantity, one.location, len(one.keys)) == (2, "", 3)
    assert (part.quantity, part.location, part.bin, part.paid, part.wine) == (1, "Attic", "2", one.paid, wine())
    assert part.pk != one.pk
    assert not set(part.keys) & set(one.keys)
    assert move(one, 2).pk == one.pk
    assert Bottle.objects.filter(location="Attic").count() == 2


def test_a_link_is_corrected_by_its_owner_and_taken_away() -> None:
    one = bottle()
    services.link(cellar=one.cellar, bottle_id=one.pk, wine=wine(), now=SLOT)
    one.refresh_from_db()
    assert (one.wine, one.linked_by) == (wine(), By.PERSON)
    services.link(cellar=one.cellar, bottle_id=one.pk, wine=None, now=SLOT)
    one.refresh_from_db()
    assert (one.wine, one.linked_by) == (None, "")


@pytest.mark.parametrize(
    "act",
    [
        lambda bob, one: consume(one, 1, by=bob),
        lambda bob, one: move(one, 1, by=bob),
        lambda bob, one: services.link(cellar=bob, bottle_id=one.pk, wine=None, now=SLOT),
        lambda bob, one: services.remove(cellar=bob, bottle_id=one.pk),
        lambda bob, one: services.edit(cellar=bob, bottle_id=one.pk, quantity=1, facts={}, now=SLOT),
    ],
)
def test_another_persons_bottles_do_not_exist(act: Callable[[Cellar, Bottle], Any]) -> None:
    one = bottle(quantity=2)
    with pytest.raises(Bottle.DoesNotExist):
        act(cellar("bob"), one)
    assert Bottle.objects.get().quantity == 2


def test_another_persons_consumption_is_not_taken_back() -> None:
    gone = consume(bottle(quantity=2), 1)
    with pytest.raises(Consumption.DoesNotExist):
        services.give_back(cellar=cellar("bob"), consumption_id=gone.pk, now=SLOT)


def test_a_cellar_takes_no_more_than_the_limit(settings: LazySettings) -> None:
    settings.CELLAR_MAX_BOTTLES = 5
    one = bottle(quantity=4)
    with pytest.raises(services.RefusedError, match="at most 5"):
        services.add_bottles(cellar=one.cellar, quantity=2, facts={"name": "More"}, wine=None, now=SLOT)
    with pytest.raises(services.RefusedError, match="at most 5"):
        services.edit(cellar=one.cellar, bottle_id=one.pk, quantity=6, facts={}, now=SLOT)
    services.add_bottles(cellar=one.cellar, quantity=1, facts={"name": "More"}, wine=None, now=SLOT + timedelta(1))


@pytest.mark.django_db(transaction=True)
def test_ten_windows_cannot_drink_more_than_is_there() -> None:
    one = bottle(quantity=4)
    barrier, refused = threading.Barrier(10), []

    def drink() -> None:
        try:
            barrier.wait(10)
            consume(one, 1)
        except services.RefusedError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=drink) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    one.refresh_from_db()
    assert (one.quantity, len(refused), Consumption.objects.count()) == (0, 6, 4)
