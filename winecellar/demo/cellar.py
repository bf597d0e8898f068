"""The demo person's cellar: filled, drunk from and valued night by night, by the code that does so for everybody.

Guarantee: added once, with its nights; what its owner does to it later stays. Called by load.py.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.db import transaction

from pricing.models import Wine
from winecellar.cellars import services
from winecellar.cellars.models import Bottle, Cellar
from winecellar.cellars.valuation import value_cellars
from winecellar.demo.history import DAYS

CELLAR_FILE = Path(__file__).with_name("cellar.csv")
NIGHTLY = time(2)
# How many days ago a bottle of which wine was opened.
DRUNK = {45: "wn_4413", 21: "wn_4714", 2: "wn_4518"}
CURRENCY = "USD"


@dataclass(frozen=True, slots=True)
class Row:
    """Bottles that came `days_ago`; a wine of the catalogue, or one that only its owner knows."""

    days_ago: int
    wine_id: str
    quantity: int
    facts: dict[str, Any]


def add_cellar(*, user_id: int, now: datetime) -> int:
    """Fill this person's cellar, unless there is one: how many rows of bottles were added."""
    if Cellar.objects.filter(owner_id=user_id).exists():
        return 0
    coming = sorted(rows(), key=lambda row: -row.days_ago)
    added = len(coming)
    today = now.astimezone(UTC).date()
    cellar = services.cellar_of(user_id=user_id, now=now - timedelta(days=DAYS))
    for days_ago in range(DAYS - 1, -1, -1):
        slot = datetime.combine(today - timedelta(days=days_ago), NIGHTLY, UTC)
        if slot > now:
            break
        while coming and coming[0].days_ago > days_ago:
            _add(cellar, coming.pop(0), slot)
        if wine_id := DRUNK.get(days_ago):
            _drink(cellar, wine_id, slot - timedelta(hours=7))
        value_cellars(slot=slot, fenced=transaction.atomic, progress=lambda *_, **__: None, now=slot)
    for row in coming:
        _add(cellar, row, now)
    return added


def rows() -> Iterator[Row]:
    """As typed in cellar.csv."""
    with CELLAR_FILE.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            wine_id, days_ago, quantity = row.pop("wine_id"), int(row.pop("days_ago")), int(row.pop("quantity"))
            numbers = ("vintage", "size_ml", "drink_from", "drink_until")
            facts: dict[str, Any] = {
                "name": row["name"],
                "location": row["location"],
                "bin": row["bin"],
                "purchased_on": row["purchased_on"] or None,
                **{name: int(row[name]) if row[name] else None for name in numbers},
            }
            for amount, currency in (("paid", "paid_currency"), ("own_value", "own_currency")):
                facts[amount] = Decimal(row[amount]) if row[amount] else None
                facts[currency] = CURRENCY if row[amount] else ""
            yield Row(days_ago, wine_id, quantity, facts)


def _add(cellar: Cellar, row: Row, now: datetime) -> None:
    wine = Wine.objects.get(pk=row.wine_id) if row.wine_id else None
    if wine is not None:
        described = ("name", "producer", "vintage", "colour", "country", "region")
        row.facts.update({name: getattr(wine, name) for name in described}, non_vintage=wine.vintage is None)
    services.add_bottles(cellar=cellar, quantity=row.quantity, facts=row.facts, wine=wine, now=now)


def _drink(cellar: Cellar, wine_id: str, at: datetime) -> None:
    bottle = Bottle.objects.filter(cellar=cellar, wine_id=wine_id, quantity__gt=0).first()
    assert bottle is not None, "cellar.csv has what is drunk"
    services.consume(cellar=cellar, bottle_id=bottle.pk, quantity=1, how="drunk", on=at.date(), note="", now=at)
