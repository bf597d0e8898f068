"""An empty site with wines, merchants, people who watch, and the chaos's own tables. Django is set up; run once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from alerts.models import Alert
from pricing import keys
from pricing.models import Merchant, Wine
from tests.chaos import bank
from winecellar.accounts.models import User
from winecellar.purchases.models import Card, Seller, StockItem

WINES, MERCHANTS, PEOPLE, KEYS = 600, 4, 120, 96
SCARCE, PLENTY = 8, 16  # kinds of bottles that are sold: many want the first, and of the others there are enough
PRICES = (("154.00", "USD"), ("19.99", "EUR"), ("12500", "JPY"))  # yen have no cents
LOWEST, HIGHEST = 100, 200  # dollars: no change is ten times the price before, which a person would have to look at
TABLES = """
CREATE TABLE chaos_key (key text PRIMARY KEY, seq bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE chaos_effect (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL,
    key text NOT NULL, seq bigint, message_id bigint, receive_count int NOT NULL);
INSERT INTO chaos_key (key) SELECT 'key-' || lpad(n::text, 3, '0') FROM generate_series(1, %s) n;
"""


@dataclass(frozen=True)
class Filled:
    """What clients need: the merchants' feed keys, people's sessions by user id, and what is sold: how many bottles
    there were at first, by stock item, the scarce ones first."""

    keys: dict[str, str]
    sessions: dict[int, str]
    stock: dict[int, int] = field(default_factory=dict)


def fill(*, scarce: int = 0) -> Filled:
    """`scarce`: bottles of each kind that many want."""
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(TABLES % KEYS)
    Wine.objects.bulk_create(
        Wine(id=wine_id(n), name=f"Wine {n}", producer="P", vintage=2016, colour="red", country="France")
        for n in range(WINES)
    )
    feed_keys = {}
    # One more, whose requests are all cut short.
    for number in range(MERCHANTS + 1):
        merchant = Merchant.objects.create(id=f"mch_{number}", name=f"Merchant {number}")
        feed_keys[merchant.pk] = keys.create_key(merchant=merchant, note="chaos", now=timezone.now())[1]
    people = [User.objects.create_user(f"p{n}@chaos.example", confirmed=True, name=f"P{n}") for n in range(PEOPLE)]
    sessions = {}
    for number, person in enumerate(people):
        client = Client()
        client.force_login(person)
        sessions[person.pk] = client.cookies["sessionid"].value
        Alert.objects.bulk_create(
            Alert(user=person, wine_id=wine_id(5 * number + n), target=Decimal("100.80"), state=Alert.State.ARMED)
            for n in range(5)
        )
    stock = _shop(people, scarce)
    connection.close()
    return Filled(feed_keys, sessions, stock)


def _shop(people: Sequence[User], scarce: int) -> dict[int, int]:
    """Merchants who sell, people with cards, bottles."""
    merchants = list(Merchant.objects.order_by("pk")[:MERCHANTS])
    Seller.objects.bulk_create(Seller(merchant=each, orders_to=f"orders@{each.pk}.example") for each in merchants)
    now = timezone.now()
    cards = [(person, *bank.customer(number)) for number, person in enumerate(people)]
    Card.objects.bulk_create(
        Card(user=person, customer_id=owner, method_id=card, label="Visa ending in 4242", changed_at=now)
        for person, owner, card in cards
    )
    items = []
    for number in range(SCARCE + PLENTY):
        price, currency = PRICES[number % len(PRICES)]
        items.append(
            StockItem(
                merchant=merchants[number % len(merchants)],
                wine_id=wine_id(number),
                on_hand=scarce if number < SCARCE else 100_000,
                price=price,
                currency=currency,
            )
        )
    return {item.pk: item.on_hand for item in StockItem.objects.bulk_create(items)}


def wine_id(number: int) -> str:
    return f"wn_{number % WINES:04}"
