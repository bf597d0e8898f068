"""How long the pages take on the server: `python -m tests.benchmarks.pages` (a quarter of an hour and 8 GB of disk).

A hundred thousand wines, a million alerts, ten million rows of history, made set-wise in SQL; the documents are made by
the product's own rebuild, the days by it for a sample of wines and by SQL for the rest. Each page is asked through
Django's whole middleware, one after the other, by addresses drawn at random; the time includes rendering.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

from tests.benchmarks import server

DATABASE = "bench-pages"
MERCHANTS = 5
SEED = 2016


@dataclass(frozen=True)
class Size:
    wines: int = 100_000
    alerts: int = 1_000_000
    people: int = 50_000
    history: int = 10_000_000
    requests: int = 200


MAKE = """
INSERT INTO pricing_merchant (id, name, website, currency)
SELECT 'mch_' || n, 'Merchant ' || n, '', '' FROM generate_series(1, {merchants}) n;
INSERT INTO pricing_wine (id, name, producer, vintage, size_ml, colour, country, region, gtin, lwin)
SELECT 'wn_' || n, (ARRAY['Château','Domaine','Clos','Cuvée','Tenuta'])[1 + n % 5] || ' ' || initcap(a.word) || ' '
       || initcap(b.word), initcap(b.word) || ' ' || (ARRAY['et Fils','Frères','& Co','Wines'])[1 + n % 4],
       CASE WHEN n % 20 > 0 THEN 1980 + n % 43 END, CASE WHEN n % 30 = 0 THEN 1500 ELSE 750 END,
       (ARRAY['red','white','sparkling','rose'])[1 + n % 4], (ARRAY['France','Italy','Spain','Germany'])[1 + n / 7 % 4],
       'Region ' || (ARRAY['Bordeaux','Toscana','Rioja','Mosel','Rhône','Piemonte'])[1 + n % 6], '', ''
FROM generate_series(1, {wines}) n,
     LATERAL (SELECT translate(to_hex(n % 5000 * 7919 % 65536), '0123456789', 'aeiouaeiou') || 'lan' AS word) a,
     LATERAL (SELECT translate(to_hex(n % 20011 * 104729 % 1048576), '0123456789', 'ouieaouiea') || 'mont' AS word) b;
INSERT INTO pricing_offer (merchant_id, wine_id, price_usd, occurred_at, event_id, seen_at)
SELECT 'mch_' || m, 'wn_' || n, 10 + (n * 7919 + m * 104729) % 30000 / 100.0,
       now() - ((n * m) % 200) * interval '1 hour', 'evt', now()
FROM generate_series(1, {wines}) n, generate_series(1, 1 + n % {merchants}) m WHERE n % 20 <> 0;
INSERT INTO pricing_pricehistory (wine_id, merchant_id, price_usd, observed_at, event_id, late)
SELECT 'wn_' || w, 'mch_' || 1 + k % (1 + w % {merchants}), 10 + (w * 7919 + k * 31) % 30000 / 100.0,
       now() - interval '400 days' + k * interval '400 days' / {each}, 'evt', false
FROM generate_series(1, {each}) k, generate_series(1, {wines}) w;
INSERT INTO accounts_user (email, name, password, is_active, is_staff, is_superuser)
SELECT 'p' || n || '@winecellar.example', '', '!', true, false, false FROM generate_series(1, {people}) n;
INSERT INTO alerts_alert (user_id, wine_id, target, state, last_notified_at, last_notified_price)
SELECT u.id, 'wn_' || 1 + abs(hashint8(u.n * 31 + k)::bigint) % {wines}, 20 + k,
       CASE WHEN k % 5 = 0 THEN 'fired' ELSE 'armed' END, CASE WHEN k % 5 = 0 THEN now() END,
       CASE WHEN k % 5 = 0 THEN 20 END
FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM accounts_user) u, generate_series(1, {alerts} / {people}) k;
"""

SAMPLE = 2_000  # wines whose days are made by the product; the rest are as many rows, of one merchant each, by SQL
OTHER_DAYS = """
INSERT INTO pricing_dailyprice (wine_id, day, low, high, close, average, offers, asked)
SELECT wine_id, (observed_at AT TIME ZONE 'UTC')::date, min(price_usd), max(price_usd), min(price_usd), min(price_usd),
       1, jsonb_build_object('mch_1', jsonb_build_array(min(observed_at), min(price_usd)))
FROM pricing_pricehistory WHERE substr(wine_id, 4)::int > {sample} GROUP BY 1, 2
"""


def make(size: Size) -> None:
    """A database with the product's own tables, filled; the projections by the product's own code."""
    server.create(DATABASE)
    child("migrate", size)
    numbers = {"merchants": MERCHANTS, **asdict(size), "each": size.history // size.wines}
    with server.connect(DATABASE) as session:
        for statement in MAKE.format(**numbers).split(";\n"):
            if statement.strip():
                session.execute(statement)
    child("project", size)
    with server.connect(DATABASE) as session:
        session.execute(OTHER_DAYS.format(sample=SAMPLE))
        session.execute("VACUUM ANALYZE")
        session.execute("CHECKPOINT")


def child(what: str, size: Size) -> str:
    """Run a part of this module in a process whose Django knows the benchmark's database."""
    environment = {
        **os.environ,
        "DATABASE_URL": server.url(DATABASE),
        "DJANGO_SETTINGS_MODULE": "winecellar.settings",
        "LOG_LEVEL": "ERROR",
    }
    command = [sys.executable, "-m", "tests.benchmarks.pages", "--child", what, "--size", json.dumps(asdict(size))]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def in_child(what: str, size: Size) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    if what == "migrate":
        call_command("migrate", verbosity=0)
    elif what == "project":
        from pricing import analytics, search_index

        sample = [f"wn_{n}" for n in range(1, min(SAMPLE, size.wines) + 1)]
        began = time.perf_counter()
        rows = search_index.rebuild()
        print(f"search-index: {rows:,} wines in {time.perf_counter() - began:,.0f} s", file=sys.stderr)
        began = time.perf_counter()
        rows = analytics.rebuild(sample)
        took = time.perf_counter() - began
        print(f"analytics-rollup: {rows:,} days of {len(sample):,} wines in {took:,.0f} s", file=sys.stderr)
    else:
        measure(size)


def measure(size: Size) -> None:
    from django.test import Client

    from alerts.models import Alert
    from pricing.models import Wine
    from winecellar.accounts.models import User

    chance = random.Random(SEED)
    names = [name.split() for name in Wine.objects.order_by("pk").values_list("name", flat=True)[:2_000]]
    people = list(User.objects.order_by("pk")[:50])
    alerts: dict[int, list[int]] = {person.pk: [] for person in people}
    for owner, pk in Alert.objects.filter(user__in=people).values_list("user", "pk"):
        alerts[owner].append(pk)

    def wine() -> str:
        return f"wn_{chance.randint(1, size.wines)}"

    def word() -> str:
        return chance.choice(chance.choice(names))

    def slip(text: str) -> str:
        at = chance.randrange(len(text))
        return text[:at] + text[at + 1 :]

    kinds = {
        "first page, signed in": lambda person: "/",
        "all wines": lambda person: "/wines",
        "search, a rare word": lambda person: f"/wines?q={chance.choice(names)[2]}",
        "search, a common word": lambda person: "/wines?q=chateau",
        "search, the start of a word": lambda person: f"/wines?q={word()[:3]}",
        "search, two words": lambda person: f"/wines?q={word()}+{word()}",
        "search, a misspelling": lambda person: f"/wines?q={slip(chance.choice(names)[2])}",
        "search, filters": lambda person: (
            f"/wines?q=chateau&vintage={chance.randint(1980, 2022)}&stock=on&low=20&high=90"
        ),
        "by price": lambda person: "/wines?order=price&stock=on",
        "a wine": lambda person: f"/wines/{wine()}",
        "a wine, all": lambda person: f"/wines/{wine()}?range=all",
        "my alerts": lambda person: "/alerts",
        "an alert": lambda person: f"/alerts/{chance.choice(alerts[person.pk])}",
        "changing an alert": lambda person: f"/alerts/{chance.choice(alerts[person.pk])}/edit",
        "notifications": lambda person: "/notifications",
        "settings of mail": lambda person: "/account/notifications",
        "my account": lambda person: "/account",
    }
    print("| page | median, ms | 95th percentile, ms | worst, ms |\n| --- | --- | --- | --- |")
    for kind, path in kinds.items():
        client, took = Client(SERVER_NAME="localhost"), []
        for number in range(size.requests + 10):
            person = people[number // 10 % len(people)]
            if number % 10 == 0:
                client.force_login(person)
            asked = path(person)
            began = time.perf_counter()
            response = client.get(asked)
            if number >= 10:
                took.append(1_000 * (time.perf_counter() - began))
            assert response.status_code == 200, (asked, response.status_code)
        took.sort()
        print(
            f"| {kind} | {took[len(took) // 2]:.0f} | {took[len(took) * 95 // 100]:.0f} | {took[-1]:.0f} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.pages", description=__doc__)
    parser.add_argument("--wines", type=int, default=Size.wines)
    parser.add_argument("--alerts", type=int, default=Size.alerts)
    parser.add_argument("--history", type=int, default=Size.history)
    parser.add_argument("--requests", type=int, default=Size.requests)
    parser.add_argument("--keep", action="store_true", help="measure in the database of the run before, and keep it")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--size", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        in_child(options.child, Size(**json.loads(options.size)))
        return
    people = max(options.alerts // 20, 50)
    size = Size(options.wines, options.alerts, people, options.history, options.requests)
    with server.running():
        if not options.keep or not server.execute(f"SELECT FROM pg_database WHERE datname = '{DATABASE}'"):
            make(size)
        print(child("measure", size))
        if not options.keep:
            server.drop(DATABASE)


if __name__ == "__main__":
    main()
