"""What people do with their bottles. The only code, beside imports.py, that writes them.

Guarantee: each call is one transaction that locks the row it changes, so that two windows cannot drink one bottle
twice; other people's bottles do not exist for it. Called by the views and the demo.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Sum

from pricing.matching import By
from pricing.models import Wine
from winecellar.cellars.models import Bottle, Cellar, Consumption


class RefusedError(Exception):
    """It cannot be done as asked; the message says why, for the person."""


def cellar_of(*, user_id: int, now: datetime) -> Cellar:
    """Somebody's cellar, made when it is first needed."""
    return Cellar.objects.get_or_create(owner_id=user_id, defaults={"created_at": now})[0]


def change_cellar(*, cellar: Cellar, currency: str, scales_by_size: bool) -> None:
    """From the next night on. The nights before stay in the currency they were valued in."""
    cellar.currency, cellar.scales_by_size = currency, scales_by_size
    cellar.save(update_fields=["currency", "scales_by_size"])


def add_bottles(*, cellar: Cellar, quantity: int, facts: Mapping[str, Any], wine: Wine | None, now: datetime) -> Bottle:
    """Put bottles into a cellar. `facts` are the descriptive fields of Bottle. Raises RefusedError."""
    with transaction.atomic():
        Cellar.objects.select_for_update(no_key=True).get(pk=cellar.pk)
        _check_room(cellar, quantity)
        return Bottle.objects.create(
            cellar=cellar,
            quantity=quantity,
            wine=wine,
            linked_by=By.PERSON.value if wine else "",
            keys=[new_key()],
            created_at=now,
            **facts,
        )


def edit(*, cellar: Cellar, bottle_id: int, quantity: int, facts: Mapping[str, Any], now: datetime) -> Bottle:
    """Correct what is written about bottles. Raises Bottle.DoesNotExist and RefusedError."""
    with transaction.atomic():
        bottle = _locked(cellar, bottle_id)
        if quantity > bottle.quantity:
            _check_room(cellar, quantity - bottle.quantity)
        for name, value in facts.items():
            setattr(bottle, name, value)
        bottle.quantity, bottle.changed_at = quantity, now
        bottle.save(update_fields=[*facts, "quantity", "changed_at"])
    return bottle


def consume(
    *, cellar: Cellar, bottle_id: int, quantity: int, how: str, on: date, note: str, now: datetime
) -> Consumption:
    """Bottles leave the cellar. Raises Bottle.DoesNotExist, and RefusedError where there are not so many."""
    with transaction.atomic():
        bottle = _locked(cellar, bottle_id)
        _check_there(bottle, quantity)
        bottle.quantity, bottle.changed_at = bottle.quantity - quantity, now
        bottle.save(update_fields=["quantity", "changed_at"])
        return Consumption.objects.create(bottle=bottle, quantity=quantity, how=how, on=on, note=note, created_at=now)


def give_back(*, cellar: Cellar, consumption_id: int, now: datetime) -> Bottle:
    """Undo a consumption. Raises Consumption.DoesNotExist."""
    with transaction.atomic():
        gone = Consumption.objects.select_for_update().get(pk=consumption_id, bottle__cellar=cellar)
        bottle = _locked(cellar, gone.bottle_id)
        bottle.quantity, bottle.changed_at = bottle.quantity + gone.quantity, now
        bottle.save(update_fields=["quantity", "changed_at"])
        gone.delete()
    return bottle


def move(*, cellar: Cellar, bottle_id: int, quantity: int, location: str, bin: str, now: datetime) -> Bottle:
    """Some or all of the bottles lie elsewhere; of some, a row of their own is made. Returns the row that moved.

    Raises Bottle.DoesNotExist and RefusedError.
    """
    with transaction.atomic():
        bottle = _locked(cellar, bottle_id)
        _check_there(bottle, quantity)
        if quantity < bottle.quantity:
            Bottle.objects.filter(pk=bottle.pk).update(quantity=F("quantity") - quantity, changed_at=now)
            # What these bottles are called in files stays with the row they came in.
            bottle.pk, bottle._state.adding = None, True
            bottle.keys, bottle.quantity, bottle.created_at = [new_key()], quantity, now
        bottle.location, bottle.bin, bottle.changed_at = location, bin, now
        bottle.save()
    return bottle


def link(*, cellar: Cellar, bottle_id: int, wine: Wine | None, now: datetime) -> Bottle:
    """A person says which wine of the catalogue it is, or that it is none. Raises Bottle.DoesNotExist."""
    with transaction.atomic():
        bottle = _locked(cellar, bottle_id)
        bottle.wine, bottle.linked_by, bottle.changed_at = wine, By.PERSON.value if wine else "", now
        bottle.save(update_fields=["wine", "linked_by", "changed_at"])
    return bottle


def remove(*, cellar: Cellar, bottle_id: int) -> None:
    """Strike bottles out that never were, with what was drunk of them. Raises Bottle.DoesNotExist."""
    with transaction.atomic():
        _locked(cellar, bottle_id).delete()


def new_key() -> str:
    """What bottles that came from no file are called in ours."""
    return f"wc:{secrets.token_hex(12)}"


def _locked(cellar: Cellar, bottle_id: int) -> Bottle:
    return Bottle.objects.select_for_update(of=("self",)).get(pk=bottle_id, cellar=cellar)


def _check_there(bottle: Bottle, quantity: int) -> None:
    if not 1 <= quantity <= bottle.quantity:
        raise RefusedError(f"There are {bottle.quantity}. Enter a number from 1 to {bottle.quantity}.")


def _check_room(cellar: Cellar, more: int) -> None:
    held = cellar.bottles.aggregate(held=Sum("quantity"))["held"] or 0
    if held + more > settings.CELLAR_MAX_BOTTLES:
        raise RefusedError(f"A cellar holds at most {settings.CELLAR_MAX_BOTTLES:,} bottles, and yours has {held:,}.")
