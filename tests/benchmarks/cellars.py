"""How fast cellars are valued and read: `python -m tests.benchmarks.cellars` (some four minutes on two cores).

The data is made set-wise in SQL: cellars whose bottles were added in rounds, so that no cellar lies together on disk;
a few of them hold a hundred times as many as the rest. Everything runs on the stock server of the other benchmarks.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.benchmarks import server

DATABASE = "bench-cellars"
SLOT = "2026-11-30 02:00:00+00"
ROUNDS = 10
CELLARS, BOTTLES, WINES, MERCHANTS = 100_000, 5_000_000, 50_000, 3
IMPORT_ROWS = 50_000


@dataclass(frozen=True)
class Size:
    cellars: int = CELLARS
    bottles: int = BOTTLES
    wines: int = WINES
    import_rows: int = IMPORT_ROWS


MAKE = """
INSERT INTO pricing_merchant (id, name, website, currency) SELECT 'mch_' || n, 'Merchant ' || n, '', ''
FROM generate_series(1, {merchants}) n;
INSERT INTO pricing_wine (id, name, producer, vintage, size_ml, colour, country, region, gtin, lwin)
SELECT 'wn_' || n, 'Wine ' || n, 'Producer ' || n % 5000, 1980 + n % 45, 750, 'red', 'France', 'Region ' || n % 90,
       '', ''
FROM generate_series(1, {wines}) n;
INSERT INTO pricing_offer (merchant_id, wine_id, price_usd, occurred_at, event_id, seen_at)
SELECT 'mch_' || m, 'wn_' || n, 10 + (n * 7919 + m * 104729) % 30000 / 100.0,
       timestamptz '{slot}' - ((n * m) % 300) * interval '1 hour', 'evt',
       timestamptz '{slot}' - ((n * m) % 60) * interval '1 day'
FROM generate_series(1, {wines}) n, generate_series(1, {merchants}) m WHERE n % 20 <> 0;
INSERT INTO accounts_user (email, name, password, is_active, is_staff, is_superuser)
SELECT 'p' || n || '@winecellar.example', '', '!', true, false, false FROM generate_series(1, {cellars}) n;
INSERT INTO cellars_cellar (owner_id, currency, scales_by_size) SELECT id, 'USD', true FROM accounts_user ORDER BY id;
"""
# One round. Of a hundred bottles 4 are valued by their owner, 76 are of a wine of ours, the rest have a price or none.
ROUND = """
INSERT INTO cellars_bottle (cellar_id, wine_id, linked_by, name, producer, vintage, non_vintage, size_ml, colour,
    country, region, quantity, paid, paid_currency, purchased_on, store, location, bin, note, own_value, own_currency,
    keys, source_wine)
SELECT c.id, CASE WHEN h % 25 < 19 THEN 'wn_' || 1 + h % {wines} END, CASE WHEN h % 25 < 19 THEN 'name' ELSE '' END,
       'Wine ' || 1 + h % {wines}, 'Producer ' || h % 5000, 1980 + h % 45, false,
       CASE WHEN h % 30 = 0 THEN 1500 ELSE 750 END, 'red', 'France', 'Region ' || h % 90, 1 + h % 12,
       CASE WHEN h % 8 <> 0 THEN 5 + h % 9000 / 100.0 END, CASE WHEN h % 8 <> 0 THEN 'USD' ELSE '' END,
       date '2020-01-01' + (h % 2000)::int, 'Store', 'Cellar', 'Bin ' || h % 40, '',
       CASE WHEN h % 25 = 24 THEN 50 END, CASE WHEN h % 25 = 24 THEN 'USD' ELSE '' END,
       ARRAY['wc:' || c.id || '-{round}-' || k], ''
FROM cellars_cellar c, LATERAL generate_series(1, {each} * CASE WHEN c.id % 5000 = 0 THEN 100 ELSE 1 END) k,
     LATERAL (SELECT abs(hashint8(c.id * 1000003 + {round} * 8191 + k)::bigint) AS h) hashed
ORDER BY hashint8(c.id)
"""
# The same rows by one statement, without chunks, fence or frozen prices: what the server can do.
PLAIN = """
WITH price AS MATERIALIZED (
    SELECT o.wine_id, w.size_ml,
           min(price_usd) FILTER (WHERE seen_at >= timestamptz '{slot}' - interval '30 days') AS offer_usd,
           (array_agg(price_usd ORDER BY seen_at DESC, price_usd))[1] AS last_usd, max(seen_at)::date AS last_seen_on
    FROM pricing_offer o JOIN pricing_wine w ON w.id = o.wine_id WHERE occurred_at <= '{slot}' GROUP BY 1, 2
), valued AS MATERIALIZED (
    SELECT cellar_id, sum(quantity * unit) AS value, sum(quantity) AS bottles,
           coalesce(sum(quantity) FILTER (WHERE unit IS NULL), 0) AS without_value, array_agg(id) AS bottle_ids,
           array_agg(quantity) AS quantities, array_agg(unit) AS unit_values, array_agg(source) AS sources,
           array_agg(seen_on) AS seen_on
    FROM (
        SELECT b.cellar_id, b.id, b.quantity, coalesce(b.own_value, by_offer, b.paid) AS unit,
               CASE WHEN b.own_value IS NOT NULL THEN 1 WHEN by_offer IS NOT NULL AND p.offer_usd IS NOT NULL THEN 2
                    WHEN by_offer IS NOT NULL THEN 3 WHEN b.paid IS NOT NULL THEN 4 ELSE 9 END AS source,
               CASE WHEN b.own_value IS NULL AND p.offer_usd IS NULL THEN p.last_seen_on END AS seen_on
        FROM cellars_bottle b LEFT JOIN price p ON p.wine_id = b.wine_id, LATERAL (SELECT round(
            CASE WHEN p.size_ml = b.size_ml THEN coalesce(p.offer_usd, p.last_usd)
                 ELSE coalesce(p.offer_usd, p.last_usd) * b.size_ml / p.size_ml END, 2) AS by_offer) o
        WHERE b.quantity > 0
    ) line GROUP BY cellar_id
), totals AS (
    INSERT INTO cellars_valuation (cellar_id, day, currency, usd_rate, value, bottles, without_value, valued_at)
    SELECT cellar_id, '2026-11-30', 'USD', 1, value, bottles, without_value, now() FROM valued RETURNING cellar_id
)
INSERT INTO cellars_valuationlines (cellar_id, day, bottle_ids, quantities, unit_values, sources, seen_on)
SELECT cellar_id, '2026-11-30', bottle_ids, quantities, unit_values, sources, seen_on FROM valued
"""
RESULT = """
SELECT count(*), sum(value), sum(bottles), sum(without_value),
       (SELECT sum(array_length(bottle_ids, 1)) FROM cellars_valuationlines) FROM cellars_valuation
"""
EMPTY = "TRUNCATE cellars_valuation, cellars_valuationlines, cellars_night, cellars_nightprice"


def make(size: Size) -> None:
    """A database with the product's own tables, and the cellars in it."""
    server.create(DATABASE)
    child("migrate")
    each = size.bottles // size.cellars // ROUNDS
    assert each, f"at least {ROUNDS} bottles for each cellar"
    numbers = {"merchants": MERCHANTS, "wines": size.wines, "cellars": size.cellars, "slot": SLOT, "each": each}
    with server.connect(DATABASE) as session:
        session.execute(MAKE.format(**numbers))
        for number in range(ROUNDS):
            session.execute(ROUND.format(**numbers, round=number))
        session.execute("VACUUM ANALYZE")
        session.execute("CHECKPOINT")


def plain() -> tuple[float, list[tuple[Any, ...]]]:
    """Seconds that one INSERT … SELECT takes, and what it wrote, in sums."""
    server.execute(EMPTY, DATABASE)
    server.execute("CHECKPOINT")
    began = time.perf_counter()
    server.execute(PLAIN.format(slot=SLOT), DATABASE)
    seconds = time.perf_counter() - began
    return seconds, server.execute(RESULT, DATABASE)


def valued() -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """Our run in a process of its own: its seconds and memory, and what it wrote, in sums."""
    server.execute(EMPTY, DATABASE)
    server.execute("CHECKPOINT")
    return child("value"), server.execute(RESULT, DATABASE)


def imported(rows: int) -> dict[str, float]:
    """Seconds for a look at CellarTracker's inventory of so many bottles, all different, and for writing it."""
    server.execute("TRUNCATE cellars_import CASCADE", DATABASE)
    server.execute("DELETE FROM cellars_bottle WHERE source_wine <> ''", DATABASE)
    return child("import", str(rows))


def beside() -> tuple[dict[str, float], dict[str, float]]:
    """What pages and a feed's writes take, in milliseconds, while nothing else runs, and while all is valued."""
    server.execute(EMPTY, DATABASE)
    server.execute("CHECKPOINT", DATABASE)
    child("pages", "2")  # so that both find the same things in memory
    idle = child("pages", "15")
    with start("value") as run:
        during = child("pages", "15")
        if run.poll() is not None:
            raise RuntimeError("the run ended before the pages were asked: take more bottles")
        assert run.wait(300) == 0
    return idle, during


def child(what: str, *arguments: str) -> Any:
    """Run a part of this module with Django on the benchmark's database."""
    with start(what, *arguments) as process:
        told, complained = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{what}: {told[-2000:]}{complained[-4000:]}")
    return json.loads(told.splitlines()[-1])


def start(what: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "DATABASE_URL": server.url(DATABASE).replace("postgresql", "postgres"),
        "DJANGO_SETTINGS_MODULE": "winecellar.settings",
        "LOG_LEVEL": "ERROR",
        "ALLOWED_HOSTS": "testserver",
    }
    command = [sys.executable, "-m", "tests.benchmarks.cellars", "--child", what, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_child(what: str, arguments: list[str]) -> dict[str, Any]:
    import django

    django.setup()
    from datetime import UTC, datetime

    from django.core.management import call_command
    from django.db import transaction

    from winecellar.cellars.valuation import value_cellars

    if what == "migrate":
        call_command("migrate", verbosity=0, interactive=False)
        return {}
    if what == "import":
        return import_file(int(arguments[0]))
    if what == "pages":
        return ask_pages(float(arguments[0]))
    assert what == "value"
    slot = datetime.fromisoformat(SLOT)
    longest, chunks = 0.0, 0

    @contextmanager
    def fenced() -> Iterator[None]:
        nonlocal longest, chunks
        began = time.perf_counter()
        with transaction.atomic():
            yield
        longest, chunks = max(longest, time.perf_counter() - began), chunks + 1

    began = time.perf_counter()
    done = value_cellars(slot=slot, fenced=fenced, progress=lambda *_, **__: None, now=datetime.now(UTC))
    return {
        "seconds": time.perf_counter() - began,
        "bottles": done.bottles,
        "cellars": done.cellars,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "longest_transaction": longest,
        "transactions": chunks,
    }


def ask_pages(seconds: float) -> dict[str, float]:
    """The cellar's page, a wine's, and a merchant's new price, in turns, each for somebody or something else."""
    import random
    from datetime import UTC, datetime, timedelta
    from decimal import Decimal
    from statistics import quantiles

    from django.db import connection
    from django.test import Client

    from pricing.models import Merchant, Wine
    from pricing.rules import Observation
    from pricing.services import record_observations
    from winecellar.accounts.models import User

    chance = random.Random(2016)
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM accounts_user ORDER BY hashint4(id::int) LIMIT 20")
        people = User.objects.filter(pk__in=[pk for (pk,) in cursor.fetchall()])
    clients = [Client() for _ in people]
    for client, person in zip(clients, people, strict=True):
        client.force_login(person)
    merchant = Merchant.objects.get(pk="mch_1")
    wine, wines = 0, Wine.objects.count()

    def feed() -> bool:
        now = datetime.now(UTC)
        seen = Observation(f"wn_{1 + wine % wines}", Decimal(chance.randint(1_000, 30_000)) / 100, now)
        record_observations(merchant=merchant, observations=[seen], attributes={}, now=now + timedelta(seconds=1))
        return True

    acts = {
        "cellar": lambda: chance.choice(clients).get("/cellar").status_code == 200,
        "wine": lambda: clients[0].get(f"/wines/wn_{chance.randint(1, wines)}").status_code == 200,
        "price": feed,
    }
    took: dict[str, list[float]] = {name: [] for name in acts}
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or wine < 20:  # a slow machine has something to count too
        wine += 1
        for name, act in acts.items():
            began = time.perf_counter()
            assert act(), name
            took[name].append(1_000 * (time.perf_counter() - began))
            time.sleep(0.005)  # people read
    return {name: quantiles(times, n=100)[98] for name, times in took.items()}


def import_file(rows: int) -> dict[str, Any]:
    from datetime import UTC, datetime

    from winecellar.cellars import imports
    from winecellar.cellars.models import Cellar

    header = [
        "iWine",
        "Barcode",
        "Location",
        "Bin",
        "Size",
        "Currency",
        "Valuation",
        "Price",
        "NativePrice",
        "NativePriceCurrency",
        "StoreName",
        "PurchaseDate",
        "BottleNote",
        "Vintage",
        "Wine",
        "Locale",
        "Country",
        "Region",
        "SubRegion",
        "Appellation",
        "Producer",
        "Type",
        "Color",
        "WA",
        "WS",
        "CT",
        "BeginConsume",
        "EndConsume",
    ]
    lines = ["\t".join(header)]
    for n in range(rows):
        wine = n * 7919 % 4_000
        lines.append(
            f"{wine}\t{n:010}\tCellar\tBin {n % 300}\t{('750ml', '1.5L', '375ml')[n % 3]}\tEUR\t{n % 900}.5\t20\t"
            f"{5 + n % 90000 / 100:.2f}\tEUR\tUnknown\t{1 + n % 12}/{1 + n % 28}/20{10 + n % 14}\tnote {n}\t"
            f"{1980 + wine % 45}\tWine {wine}\tFrance, Bordeaux\tFrance\tBordeaux\tMédoc\tPauillac\t"
            f"Producer {wine % 5000}\tRed\tRed\t18-19+\t\t93.5\t2020\t2040"
        )
    content = "\n".join(lines).encode()
    cellar = Cellar.objects.earliest("id")
    now = datetime.now(UTC)
    began, cpu = time.perf_counter(), time.process_time()
    one = imports.preview(cellar=cellar, file_name="bench.tsv", content=content, now=now)
    looked = time.perf_counter() - began
    done = imports.apply(cellar=cellar, import_id=one.pk, now=now)
    seconds = time.perf_counter() - began
    assert done.report["new"] == rows, done.report
    return {
        "look": looked,
        "cpu": time.process_time() - cpu,
        "write": seconds - looked,
        "matched": done.report["matched"],
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cellars", description=__doc__)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--cellars", type=int, default=CELLARS)
    parser.add_argument("--bottles", type=int, default=BOTTLES, help="rows of bottles, over all cellars")
    parser.add_argument("--rows", type=int, default=IMPORT_ROWS, help="of the imported file")
    parser.add_argument("--runs", type=int, default=2, help="how often each is measured, in turns")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run_child(options.child, options.arguments)))
        return
    size = Size(cellars=options.cellars, bottles=options.bottles, import_rows=options.rows)
    with server.running():
        began = time.perf_counter()
        make(size)
        rows = server.execute("SELECT count(*) FROM cellars_bottle", DATABASE)[0][0]
        print(f"made {size.cellars:,} cellars with {rows:,} rows of bottles in {time.perf_counter() - began:.0f} s")
        for _ in range(options.runs):
            seconds, expected = plain()
            ours, found = valued()
            assert found == expected, f"the runs disagree: {found} and {expected}"
            took, longest = ours["seconds"], ours["longest_transaction"]
            print(f"one INSERT … SELECT {seconds:.1f} s; ours {took:.1f} s, {seconds / took:.2f} of its speed:")
            print(f"  {rows / took:,.0f} rows/s, {ours['memory_mb']:.0f} MB,")
            print(f"  {ours['transactions']} transactions, the longest {longest:.2f} s", flush=True)
        idle, during = beside()
        for name, ms in idle.items():
            ratio = during[name] / ms
            print(f"p99 of a {name}: {ms:.0f} ms idle, {during[name]:.0f} ms while all is valued: {ratio:.1f} x")
        for _ in range(options.runs):
            took = imported(size.import_rows)
            look, write = (size.import_rows / took[part] for part in ("look", "write"))
            print(f"import: looked at {look:,.0f} rows/s, written at {write:,.0f} rows/s, {took['memory_mb']:.0f} MB")
        server.drop(DATABASE)


if __name__ == "__main__":
    main()
