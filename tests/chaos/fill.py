"""An empty site with wines, merchants, people who watch, and the chaos's own tables. Django is set up; run once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from alerts.models import Alert
from pricing import keys
from pricing.models import Merchant, Wine
from winecellar.accounts.models import User

WINES, MERCHANTS, PEOPLE, KEYS = 600, 4, 120, 96
LOWEST, HIGHEST = 100, 200  # dollars: no change is ten times the price before, which a person would have to look at
TABLES = """
CREATE TABLE chaos_key (key text PRIMARY KEY, seq bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE chaos_effect (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL,
    key text NOT NULL, seq bigint, message_id bigint, receive_count int NOT NULL);
INSERT INTO chaos_key (key) SELECT 'key-' || lpad(n::text, 3, '0') FROM generate_series(1, %s) n;
"""


@dataclass(frozen=True)
class Filled:
    """What clients need: the merchants' feed keys, and people's sessions by user id."""

    keys: dict[str, str]
    sessions: dict[int, str]


def fill() -> Filled:
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
    connection.close()
    return Filled(feed_keys, sessions)


def wine_id(number: int) -> str:
    return f"wn_{number % WINES:04}"
