"""`python -m tests.benchmarks.catalogue`: a night's catalogue of a merchant who has changed one price in twenty.

The database is filled as the night before would have left it, by SQL; then the file is received and taken by the
product's own code in a process of its own, which reports its time and its memory. Beside it, what the server itself
can do with the same rows: COPY into a bare table and INSERT … SELECT into one with the columns of a listing.

  --rows 1000000   how many rows; --changed 0.05 how many of them ask another price
  --profile        where the process spends its time, by function
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.benchmarks import server
from tests.benchmarks.process import server_cpu_seconds
from winecellar.embedded import ROOT

DATABASE = "bench-catalogue"
MERCHANT = "mch_bench"
LAST_NIGHT = datetime(2026, 3, 13, 2, tzinfo=UTC)
TONIGHT = LAST_NIGHT + timedelta(days=1)
HEAD = "id,title,producer,size,vintage,gtin,lwin,price,currency,availability,url,colour\n"
# Wines, listings and offers of the staged rows, as if last night's file had been taken.
FILL = """
INSERT INTO pricing_wine (id, name, producer, vintage, size_ml, colour, country, region, gtin, lwin, retired_at)
SELECT 'wn_' || n, 'Cuvée ' || n, 'Domaine Essai', 2019, 750, 'red', 'France', '', '', '', NULL FROM {table};
INSERT INTO pricing_listing (merchant_id, source_id, title, name, vintage, non_vintage, pack, size_ml, gtin, lwin,
    said_wine_id, unclear, wine_id, matched_by, price, currency, occurred_at, in_file, file_said, file_asked)
SELECT '{merchant}', s.source_id, s.title, pricing_comparable(s.title), 2019, false, 1, 750, '', '', '', '', 'wn_' || n,
       'name', s.price::numeric, 'USD', '{time}', true, said, asked
FROM (SELECT s.*, {digests} FROM {table} s) s ORDER BY n;
INSERT INTO pricing_offer (merchant_id, wine_id, price_usd, occurred_at, seen_at, event_id)
SELECT '{merchant}', 'wn_' || n, price::numeric, '{time}', '{time}', 'evt_' || n FROM {table} ORDER BY n;
"""


def row(n: int, price: str) -> str:
    return (
        f"sku-{n},Cuvée {n},Domaine Essai,75cl,2019,,,{price},USD,in stock,https://shop.example/wines/cuvee-{n},red\n"
    )


def write(path: Path, rows: int, changed: float) -> None:
    """A file whose every twentieth price, or so, is a dollar less than the night before."""
    every = round(1 / changed) if changed else 0
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD)
        for n in range(1, rows + 1):
            price = 20 + n % 300
            file.write(row(n, f"{price - 1 if every and n % every == 0 else price}.00"))


def read(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.catalogue")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changed", type=float, default=0.05)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the filled database, and use it if it is there")
    parser.add_argument("--child", choices=("prepare", "take"), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main() -> None:
    options = read()
    if options.child:
        child(options)
        return
    with server.running():
        taken, server_cpu, plain = measured(options)
        print(f"{options.rows:,} rows, {options.changed:.0%} changed, on {server.described()}")
    print(
        f"  taken:   {taken['rows_per_second']:>9,.0f} rows/s, {taken['seconds']:.1f} s,"
        f" {taken['memory_mb']:.0f} MB; processor: ours {taken['cpu']:.1f} s, the server's {server_cpu:.1f} s"
    )
    for name, seconds in taken["parts"].items():
        print(f"    {name:<10} {seconds:6.1f} s")
    print(f"  plain:   {options.rows / plain:>9,.0f} rows/s, {plain:.1f} s: COPY and INSERT … SELECT of the same rows")
    print(f"  ratio:   {taken['seconds'] / plain:.1f}")
    print(f"  counted: {taken['counts']}")


def measured(options: argparse.Namespace) -> tuple[dict, float, float]:
    """What taking tonight's file came to, the server's processor seconds for it, and the seconds of the plain way."""
    with tempfile.TemporaryDirectory() as folder:
        before, tonight = Path(folder) / "before.csv", Path(folder) / "tonight.csv"
        write(before, options.rows, 0)
        write(tonight, options.rows, options.changed)
        filled = f"{DATABASE}-{options.rows}"
        if not (options.keep and exists(filled)):
            server.create(filled)
            subprocess.run(
                [sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment(filled), check=True
            )
            again(options, "prepare", before, filled)
            server.execute("VACUUM ANALYZE", filled)
        server.create(DATABASE, template=filled)
        server.execute("CHECKPOINT")
        plain = plainly(tonight)
        server_cpu = server_cpu_seconds()
        taken = again(options, "take", tonight, DATABASE)
        server_cpu = server_cpu_seconds() - server_cpu
        if not options.keep:
            server.drop(filled)
        server.drop(DATABASE)
    return taken, server_cpu, plain


def exists(database: str) -> bool:
    return bool(server.execute(f"SELECT 1 FROM pg_database WHERE datname = '{database}'"))


def environment(database: str) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": server.url(database).replace("postgresql", "postgres"),
        "DJANGO_SETTINGS_MODULE": "winecellar.settings",
        "LOG_LEVEL": "WARNING",
    }


def again(options: argparse.Namespace, part: str, file: Path, database: str) -> dict:
    """This module once more, as a process of its own: what it prints."""
    words = [sys.executable, "-m", "tests.benchmarks.catalogue", "--child", part, "--file", str(file)]
    words += ["--profile"] if options.profile else []
    done = subprocess.run(words, cwd=ROOT, env=environment(database), stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def child(options: argparse.Namespace) -> None:
    import django

    django.setup()
    print(json.dumps(prepare(options.file) if options.child == "prepare" else take(options.file, options.profile)))


def prepare(path: Path) -> dict[str, int]:
    from django.db import connection

    from pricing.catalogues import compare, files, lease, refresh
    from pricing.catalogues.ahead import Ahead
    from pricing.models import CatalogueSettings, Merchant

    merchant = Merchant.objects.create(id=MERCHANT, name="Bench", currency="USD")
    file = files.receive(
        merchant=merchant, name=path.name, data=blocks(path), as_of=LAST_NIGHT, send=False, by="bench", now=LAST_NIGHT
    )
    leased = lease.claim(file_id=file.pk, now=LAST_NIGHT)
    assert leased is not None
    ahead = Ahead()
    refresh.step(leased, ahead, now=LAST_NIGHT)
    ahead.close()
    digests = compare.DIGESTS.replace("%(reading)s", str(leased.reading))
    with connection.cursor() as cursor:
        cursor.execute(FILL.format(table=leased.stage, merchant=MERCHANT, time=LAST_NIGHT, digests=digests))
    lease.refuse(leased, "It was for the benchmark.", now=LAST_NIGHT)
    CatalogueSettings.objects.update(rows=leased.rows, as_of=LAST_NIGHT)
    return {"rows": leased.rows}


def take(path: Path, profile: bool) -> dict:
    from pricing.catalogues import files, refresh, report
    from pricing.models import Merchant

    parts: dict[str, float] = {}
    began = last = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal last
        parts[name] = parts.get(name, 0.0) + time.perf_counter() - last
        last = time.perf_counter()

    profiler = cProfile.Profile() if profile else None
    if profiler:
        profiler.enable()
    merchant = Merchant.objects.get(pk=MERCHANT)
    file = files.receive(
        merchant=merchant, name=path.name, data=blocks(path), as_of=TONIGHT, send=False, by="bench", now=TONIGHT
    )
    lap("receive")
    refresh.run(file_id=file.pk, now=TONIGHT, progress=lambda file: lap(file.status))
    lap("done")
    seconds = time.perf_counter() - began
    if profiler:
        profiler.disable()
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(45)
    file.refresh_from_db()
    return {
        "rows_per_second": file.rows / seconds,
        "seconds": seconds,
        "cpu": time.process_time(),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "parts": parts,
        "counts": {name: getattr(file, name) for name in report.COUNTS},
    }


def blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block


def plainly(path: Path) -> float:
    """Seconds for the same rows by COPY, then from there into a table with a listing's key and columns."""
    columns = ", ".join(f"{name} text" for name in HEAD.strip().split(","))
    with server.connect(DATABASE) as session:
        session.execute(f"CREATE UNLOGGED TABLE plain_stage ({columns})")
        session.execute("CREATE TABLE plain_listing (LIKE pricing_listing INCLUDING ALL)")
        began = time.perf_counter()
        with session.cursor().copy("COPY plain_stage FROM STDIN (FORMAT csv, HEADER)") as copy:
            for block in blocks(path):
                copy.write(block)
        session.execute(
            "INSERT INTO plain_listing (merchant_id, source_id, title, name, vintage, non_vintage, pack, size_ml, gtin,"
            " lwin, said_wine_id, unclear, matched_by, price, currency, occurred_at, in_file)"
            " SELECT 'mch_bench', id, title, title, vintage::int, false, 1, 750, '', '', '', '', '', price::numeric,"
            " currency, clock_timestamp(), true FROM plain_stage"
        )
        seconds = time.perf_counter() - began
        session.execute("DROP TABLE plain_stage, plain_listing")
    return seconds


if __name__ == "__main__":
    main()
