"""Makes the tables of the benchmarks' site and fills it: wines, merchants with keys, people who watch. A process."""

# ruff: noqa: E402 (Django is set up before its models are imported)
from __future__ import annotations

import json
import sys

import django

django.setup()
from django.core.management import call_command
from django.utils import timezone

from alerts.models import Alert
from pricing import keys
from pricing.models import Merchant, Wine
from tests.benchmarks.bare_view import TABLE
from winecellar.accounts.models import User

SENDERS = 4


def main(wines: int, alerts: int) -> list[str]:
    """Every merchant sells every wine for 100 to 151 dollars; an alert waits for 101, and is met each second time."""
    call_command("migrate", verbosity=0)
    with django.db.connection.cursor() as cursor:
        cursor.execute(TABLE)
    Wine.objects.bulk_create(
        Wine(id=f"wn_{number}", name=f"Wine {number}", producer="P", vintage=2016, colour="red", country="France")
        for number in range(wines)
    )
    users = [User.objects.create_user(f"person{n}@bench.example", confirmed=True, name="P") for n in range(100)]
    Alert.objects.bulk_create(
        Alert(user=users[n % 100], wine_id=f"wn_{n * wines // alerts}", target=101, state=Alert.State.ARMED)
        for n in range(alerts)
    )
    made = []
    for number in range(SENDERS):
        merchant = Merchant.objects.create(id=f"mch_{number}", name=f"Merchant {number}")
        made.append(keys.create_key(merchant=merchant, note="bench", now=timezone.now())[1])
    return made


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))), flush=True)
