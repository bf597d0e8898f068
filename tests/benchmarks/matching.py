"""How fast prices meet alerts: `python -m tests.benchmarks.matching` (some three minutes on two cores).

A million armed alerts over a hundred thousand wines, made set-wise in SQL, and one wine more that a hundred thousand
people watch. What is timed is the handler with its commit: what matching adds to a claim and its ack.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from tests.benchmarks import server

DATABASE = "bench-matching"
BATCH = 200  # as in winecellar/routes.py
HOT = "wn_hot"


@dataclass(frozen=True)
class Size:
    alerts: int = 1_000_000
    wines: int = 100_000
    people: int = 10_000
    watchers: int = 100_000
    batches: int = 200


# The alerts of a wine were set at different times, so they do not lie together. Targets are spread over 50 to 149.
MAKE = """
INSERT INTO pricing_merchant (id, name, website, currency) VALUES ('mch_1', 'Merchant 1', '', '');
INSERT INTO pricing_wine (id, name, producer, vintage, size_ml, colour, country, region, gtin, lwin)
SELECT id, 'Wine ' || id, 'Producer', 2016, 750, 'red', 'France', 'Region', '', ''
FROM (SELECT 'wn_' || n FROM generate_series(1, {wines}) n UNION ALL SELECT '{hot}') wine (id);
INSERT INTO pricing_offer (merchant_id, wine_id, price_usd, occurred_at, event_id, seen_at)
SELECT 'mch_1', id, 200, timestamptz '2026-01-01', 'evt_0', timestamptz '2026-01-01' FROM pricing_wine;
INSERT INTO accounts_user (email, name, password, is_active, is_staff, is_superuser)
SELECT 'p' || n || '@winecellar.example', '', '!', true, false, false
FROM generate_series(1, greatest({people}, {watchers})) n;
INSERT INTO account_emailaddress (user_id, email, verified, "primary") SELECT id, email, true, true FROM accounts_user;
INSERT INTO alerts_alert (user_id, wine_id, target, state)
SELECT 1 + n % {people}, 'wn_' || 1 + abs(hashint8(n)::bigint) % {wines}, 50 + n % 100, 'armed'
FROM generate_series(1, {alerts}) n;
INSERT INTO alerts_alert (user_id, wine_id, target, state) SELECT n, '{hot}', 150, 'armed'
FROM generate_series(1, {watchers}) n;
"""
OFFER = """
UPDATE pricing_offer SET price_usd = new.price, event_id = new.event_id, occurred_at = new.at
FROM jsonb_to_recordset(%s::jsonb) AS new (wine_id text, price numeric, event_id text, at timestamptz)
WHERE pricing_offer.wine_id = new.wine_id
"""


def make(size: Size) -> None:
    """A database with the product's own tables, and the alerts in it."""
    server.create(DATABASE)
    child("migrate")
    numbers = {"alerts": size.alerts, "wines": size.wines, "people": size.people, "watchers": size.watchers}
    with server.connect(DATABASE) as session:
        session.execute(MAKE.format(**numbers, hot=HOT))
        session.execute("VACUUM ANALYZE")
        session.execute("CHECKPOINT")


def child(what: str, *arguments: str) -> Any:
    """Run a part of this module with Django on the benchmark's database."""
    environment = {
        **os.environ,
        "DATABASE_URL": server.url(DATABASE).replace("postgresql", "postgres"),
        "DJANGO_SETTINGS_MODULE": "winecellar.settings",
        "LOG_LEVEL": "ERROR",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.matching", "--child", what, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{what}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run_child(what: str, arguments: list[str]) -> dict[str, Any]:
    import django

    django.setup()
    from django.core.management import call_command

    if what == "migrate":
        call_command("migrate", verbosity=0, interactive=False)
        return {}
    if what == "batches":
        return many_wines(wines=int(arguments[0]), batches=int(arguments[1]))
    assert what == "hot"
    return one_wine()


def many_wines(*, wines: int, batches: int) -> dict[str, Any]:
    """Batches of prices of as many wines; milliseconds for each event of a batch."""
    dice, took = random.Random(5), []
    for number in range(batches):
        chosen = dice.sample(range(1, wines + 1), min(BATCH, wines))
        prices = {f"wn_{wine}": 60 + dice.randrange(100) for wine in chosen}
        took.append(_match(prices, number) / len(prices) * 1000)
    ordered = sorted(took)
    return {
        "events": batches * BATCH,
        "p50_ms": statistics.median(ordered),
        "p99_ms": ordered[int(len(ordered) * 0.99) - (len(ordered) < 100)],
        "mails": _count("alerts_notification"),
        "memory_mb": _memory(),
    }


def one_wine() -> dict[str, Any]:
    """One price of the wine that everybody watches."""
    before, began_mb = _count("alerts_notification"), _memory()
    seconds = _match({HOT: 140}, 0)
    commands = _count("alerts_notification") - before
    return {
        "commands": commands,
        "seconds": seconds,
        "commands_per_second": commands / seconds,
        "memory_grown_mb": _memory() - began_mb,
    }


def _match(prices: dict[str, int], number: int) -> float:
    """Seconds of the handler and its commit, for one price event of each of these wines."""
    from datetime import UTC, datetime, timedelta
    from decimal import Decimal

    from django.db import connection, transaction

    from alerts.matching import match
    from jobs.messages import Message, dumps, new_event_id
    from pricing.events import PriceChanged

    at = datetime(2026, 2, 1, tzinfo=UTC) + timedelta(minutes=number)
    events = [
        PriceChanged(new_event_id(), wine, "Wine", "mch_1", Decimal(200), Decimal(price), "USD", at)
        for wine, price in prices.items()
    ]
    offers = [
        {"wine_id": e.wine_id, "price": e.new_price_usd, "event_id": e.event_id, "at": at.isoformat()} for e in events
    ]
    with connection.cursor() as cursor:
        cursor.execute(OFFER, [dumps(offers)])
    messages = [
        Message(n, n, e.event_id, "wine.price_changed", e.wine_id, dumps(e.as_message().body), None, at.isoformat(), 1)
        for n, e in enumerate(events)
    ]
    began = time.perf_counter()
    with transaction.atomic():
        match(messages)
    return time.perf_counter() - began


def _count(table: str) -> int:
    return int(server.execute(f"SELECT count(*) FROM {table}", DATABASE)[0][0])


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--quick", action="store_true", help="a hundredth of the size")
    reader.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = reader.parse_args()
    if options.child:
        print(json.dumps(run_child(options.child[0], options.child[1:])))
        return
    size = Size(alerts=10_000, wines=1_000, people=100, watchers=1_000, batches=20) if options.quick else Size()
    with server.running():
        make(size)
        found = child("batches", str(size.wines), str(size.batches))
        print(f"{size.alerts:,} alerts over {size.wines:,} wines, batches of {BATCH}:", json.dumps(found))
        server.execute("CHECKPOINT", DATABASE)
        found = child("hot")
        print(f"one wine with {size.watchers:,} watchers:", json.dumps(found))
        server.drop(DATABASE)


if __name__ == "__main__":
    main()
