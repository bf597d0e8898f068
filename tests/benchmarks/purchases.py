"""How many purchases go through, from the form's POST to the last mail: `python -m tests.benchmarks.purchases`.

Two parts. *Through*: buyers in processes of their own call the service as the page does, workers are real ones, and the
payment provider answers at once (the adapter is replaced in the workers, so that it is ours that is measured and not
a simulation; --http has them speak Stripe's library to the simulated provider) and so does the mail provider. What is
told is purchases a second from the first reservation to the last completed. *Hanging*: a thousand purchases wait for
a provider that never answers, while prices become history and alerts as ever: their time with and without.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests.benchmarks import server
from tests.benchmarks.process import cpu_seconds, server_cpu_seconds

DATABASE = "bench-purchases"
HANGS = 10.0  # as long as PAYMENT_TIMEOUT lets it
ITEMS = 50  # so that buyers wait for each other as in a shop, not as at one till
SETTINGS = "tests.benchmarks.purchases_settings"
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.purchases", description=__doc__)
    parser.add_argument("--count", type=int, default=6_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--buyers", type=int, default=2)
    parser.add_argument("--waiting", type=int, default=1_000)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--only", choices=("through", "hanging"))
    chosen = parser.parse_args()
    with server.running():
        server.create(DATABASE)
        try:
            os.environ.update(DATABASE_URL=server.url(DATABASE), DJANGO_SETTINGS_MODULE=SETTINGS, LOG_LEVEL="CRITICAL")
            import django

            django.setup()
            _make(chosen.count)
            print(server.described())
            if chosen.only != "hanging":
                _through(chosen)
            if chosen.only != "through":
                _hanging(chosen)
        finally:
            from django.db import connections

            connections.close_all()
            server.drop(DATABASE)


def _make(count: int) -> None:
    from allauth.account.models import EmailAddress
    from django.core.management import call_command
    from django.utils import timezone

    from pricing.models import Merchant, Wine
    from winecellar.accounts.models import User
    from winecellar.purchases.models import Card, Seller, StockItem

    call_command("migrate", verbosity=0)
    merchant = Merchant.objects.create(id="mch_1", name="Merchant 1")
    Seller.objects.create(merchant=merchant, orders_to="orders@merchant.example")
    wines = Wine.objects.bulk_create(
        Wine(id=f"wn_{n}", name=f"Wine {n}", producer="P", vintage=2016, colour="red", country="France")
        for n in range(ITEMS)
    )
    StockItem.objects.bulk_create(
        StockItem(merchant=merchant, wine=wine, on_hand=10**6, price="154.00", currency="USD") for wine in wines
    )
    people = User.objects.bulk_create(User(email=f"p{n}@winecellar.example", password="!") for n in range(2_000))
    EmailAddress.objects.bulk_create(
        EmailAddress(user=user, email=user.email, primary=True, verified=True) for user in people
    )
    Card.objects.bulk_create(
        Card(user=user, customer_id=f"cus_{user.pk}", method_id="pm_1", label="Visa", changed_at=timezone.now())
        for user in people
    )


# --- Through ----------------------------------------------------------------------------------------------------


def _through(chosen: argparse.Namespace) -> None:
    from winecellar.purchases.models import Purchase

    with ExitStack() as started:
        environment = started.enter_context(_provider(chosen.http))
        workers = [started.enter_context(_worker(**environment)) for _ in range(chosen.workers)]
        each = chosen.count // chosen.buyers
        buyers = [_begun("buy", str(each), str(n)) for n in range(chosen.buyers)]
        used = _Used(workers)
        began = time.perf_counter()
        for buyer in buyers:
            assert buyer.stdin
            buyer.stdin.close()  # what they wait for
        used.by_buyers = sum(float(buyer.stdout.read()) for buyer in buyers if buyer.stdout)
        assert not any(buyer.wait() for buyer in buyers)
        bought = time.perf_counter() - began
        _until(lambda: not Purchase.objects.exclude(state="completed").exists())
        seconds = time.perf_counter() - began
        count = Purchase.objects.count()
        spent = used.told(count)
    how = "Stripe's library and a simulated provider" if chosen.http else "a provider that answers at once"
    print(f"{count:,} purchases by {how}: {count / seconds:,.0f} a second end to end, {count / bought:,.0f} reserved")
    print(f"processor for each purchase: {spent}")


class _Used:
    """Processor time from here on: of the workers and the server; what the buyers used, they tell themselves."""

    def __init__(self, workers: list[int]) -> None:
        self._workers = workers
        self._before = self._now()
        self.by_buyers = 0.0

    def _now(self) -> dict[str, float]:
        return {"workers": cpu_seconds(*self._workers), "Postgres": server_cpu_seconds()}

    def told(self, count: int) -> str:
        seconds = {"buyers": self.by_buyers, **{who: now - self._before[who] for who, now in self._now().items()}}
        spent = {who: 1e3 * used / count for who, used in seconds.items()}
        return f"{sum(spent.values()):.2f} ms ({', '.join(f'{who} {ms:.2f}' for who, ms in spent.items())})"


@contextmanager
def _provider(http: bool) -> Iterator[dict[str, str]]:
    if not http:
        yield {"BENCH_ANSWERS": "0"}
        return
    from winecellar.demo.payments_api import PaymentServer
    from winecellar.purchases.models import Card

    bank = PaymentServer().start()
    bank.bank.cards["pm_1"] = {"id": "pm_1", "declines": ""}
    bank.bank.customers.update({card.customer_id: {} for card in Card.objects.all()})
    try:
        yield {"BENCH_PAYMENTS": bank.url}
    finally:
        bank.shutdown()


# --- Hanging ----------------------------------------------------------------------------------------------------


def _hanging(chosen: argparse.Namespace) -> None:
    """Prices at a rate that the queue takes easily; from the feed's commit to the history row, and purchases beside."""
    calm = _price_latencies(0)
    beside = _price_latencies(chosen.waiting)
    for name, (times, waiting) in (("alone", calm), ("beside them", beside)):
        print(
            f"price to history, {name}: median {median(times):.0f} ms, p99 {quantiles(times, n=100)[98]:.0f} ms;"
            f" purchases waiting for the provider: {waiting:,}"
        )


def _price_latencies(waiting: int, seconds: float = 15.0) -> tuple[list[float], int]:
    from django.db import connection, transaction

    from jobs.outbox import publish
    from winecellar.purchases.models import Purchase

    if waiting:
        buy(waiting, 0)
    with _worker(BENCH_ANSWERS=str(HANGS)):
        events: dict[str, None] = {}
        ends = time.perf_counter() + seconds
        number = 0
        while time.perf_counter() < ends:
            number += 1
            event = _event(number)
            with transaction.atomic():
                publish([event.as_message()])
            events[event.event_id] = None
            time.sleep(0.02)
        still = Purchase.objects.filter(state__in=["charging", "asking"]).count()

        def all_there() -> bool:
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pricing_pricehistory WHERE event_id = ANY(%s)", [list(events)])
                return bool(cursor.fetchone()[0] == len(events))

        _until(all_there)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT extract(epoch FROM h.recorded_at - m.published_at) * 1000 FROM pricing_pricehistory h"
                " JOIN jobs_message m USING (event_id) WHERE h.event_id = ANY(%s)",
                [list(events)],
            )
            times = [float(ms) for (ms,) in cursor.fetchall()]
    return times, still


def _event(number: int) -> Any:
    from django.utils import timezone

    from jobs.messages import new_event_id
    from pricing.events import PriceChanged

    return PriceChanged(
        event_id=new_event_id(),
        wine_id=f"wn_{number % ITEMS}",
        wine_name="Wine",
        merchant_id="mch_1",
        old_price_usd=None,
        new_price_usd=Decimal(100 + number % 50),
        currency="USD",
        occurred_at=timezone.now(),
    )


# --- Processes --------------------------------------------------------------------------------------------------


def buy(count: int, seed: int) -> None:
    """As the page does, one after the other."""
    import secrets

    from django.utils import timezone

    from winecellar.accounts.models import User
    from winecellar.purchases import services
    from winecellar.purchases.models import StockItem

    people = list(User.objects.order_by("pk"))
    items = list(StockItem.objects.values_list("pk", flat=True))
    for n in range(count):
        services.buy(
            buyer=people[(n * 2 + seed) % len(people)],
            item_id=items[(n + seed * 7) % len(items)],
            quantity=1,
            unit_price=Decimal("154.00"),
            currency="USD",
            token=secrets.token_hex(16),
            now=timezone.now(),
        )


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def _begun(*command: str, **environment: str) -> subprocess.Popen[bytes]:
    """This program in another part, once it says that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.purchases", *command],
        cwd=ROOT,
        env=_environment(**environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@contextmanager
def _worker(**environment: str) -> Iterator[int]:
    """A worker of all subscriptions, once it is ready; its process id."""
    process = _begun("work", **environment)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


def work() -> None:
    from jobs.worker import Worker
    from winecellar.purchases import payments

    if answers := os.environ.get("BENCH_ANSWERS"):
        chosen = Scripted(float(answers))
        payments.provider = lambda: chosen  # type: ignore[assignment, return-value]
    print("ready", flush=True)
    sys.exit(Worker().run())


class Scripted:
    """A provider in the process: says yes at once, or after so many seconds nothing."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def look(self, payment: Any) -> Any:
        from winecellar.purchases.facts import Charge, Seen

        return Seen(Charge.OPEN, f"pi_{payment.reference}")

    open = look

    def charge(self, payment: Any, intent_id: str) -> Any:
        from jobs.errors import AwayError
        from winecellar.purchases.facts import Charge, Seen

        if self._seconds:
            time.sleep(self._seconds)
            raise AwayError("bench: no answer")
        return Seen(Charge.CHARGED, intent_id, taken=payment.amount, currency=payment.currency, fee=Decimal("4.77"))


def _until(done: Any, seconds: float = 300.0) -> None:
    ends = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < ends, "it does not end"
        time.sleep(0.02)


if __name__ == "__main__":
    if sys.argv[1:2] in (["buy"], ["work"]):
        import django

        django.setup()
        if sys.argv[1] == "work":
            work()
        print("ready", flush=True)
        sys.stdin.read()
        used = time.process_time()
        buy(int(sys.argv[2]), int(sys.argv[3]))
        print(time.process_time() - used)
    else:
        main()
