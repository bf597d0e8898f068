"""The crash-point sweep over a whole purchase, and seeded chaos at the provider: whatever dies or is lost, money taken
is bottles delivered plus refunds, to the cent, by both ledgers; every saga ends; nobody is told of what never was."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from django.utils import timezone

from jobs.models import DeadLetter, Delivery, Subscription
from jobs.subscriptions import External, load_routes
from jobs.worker import drain
from tests.faults import mail_server, page
from tests.faults.crash import Points, sweep
from tests.purchases.cast import (
    at_once,
    buy,
    buyer,
    check_books,
    later,
    state_of,
    stock,
    upkeep_now,
    wipe,
    work,
    work_until_taken,
)
from tests.purchases.conftest import provider as provider  # noqa: PLC0414  (a fixture)
from winecellar.demo.payments_api import PaymentServer
from winecellar.demo.payments_script import Chaos, PaymentScript
from winecellar.purchases import services
from winecellar.purchases.models import Purchase, StockItem
from winecellar.purchases.rules import Event, RefusedError, State

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _world(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.EMAIL_BACKEND = mail_server.BACKEND
    settings.PAYMENT_TIMEOUT = timedelta(seconds=0.5)
    mail_server.begin(tmp_path / "accepted")
    # One effect under way at a time and one partition, so that each run meets the same points in the same order.
    for name in ("purchase-payment", "purchase-mail"):
        route = load_routes()[name]
        assert isinstance(route.handler, External)
        monkeypatch.setitem(load_routes(), name, replace(route, handler=replace(route.handler, at_once=1)))
    send = requests.Session.send

    def counted_send(self: Any, *given: Any, **more: Any) -> Any:
        """Each request to the provider is a point: before it is sent, and after its answer has come."""
        points = mail_server.points
        return points.around(lambda: send(self, *given, **more)) if points else send(self, *given, **more)

    monkeypatch.setattr(requests.Session, "send", counted_send)
    yield
    mail_server.begin(None)


def told() -> Counter[str]:
    ids = mail_server.accepted()
    return Counter(each.partition(".")[0].strip("<").rpartition("-")[2].partition("@")[0] for each in ids)


def run_under(these: Points, act: Callable[[], object]) -> None:
    mail_server.points = these
    act()


def sweep_purchase(
    provider: PaymentServer,
    *,
    prepare: Callable[[], None],
    act: Callable[[], object],
    ends: set[State],
    bottles: int = 3,
) -> int:
    """Die at each point of `act`, before and after; then what workers and the minute's job do, and both ledgers."""

    def fresh() -> None:
        wipe(provider)
        mail_server.forget()
        Subscription.objects.filter(name__startswith="purchase-").update(partitions=1)
        prepare()

    def check_end(where: str) -> None:
        assert not DeadLetter.objects.exists(), where
        for row in Purchase.objects.all():
            assert state_of(row) in ends, (where, row.state)
        check_books(provider, bottles={StockItem.objects.get().pk: bottles})
        happened = Counter(Purchase.objects.values_list("state", flat=True))
        assert bool(told()["sold"]) == bool(happened[State.COMPLETED]), where

    def no_half_truth() -> None:
        for item in StockItem.objects.all():
            held = Purchase.objects.filter(state__in=["charging", "asking"])
            assert item.reserved == sum(row.quantity for row in held)

    def recover() -> None:
        work(waits=True)

    return sweep(
        prepare=fresh,
        act=lambda these: run_under(these, act),
        check_after_crash=no_half_truth,
        recover=recover,
        check_end=check_end,
    )


def test_a_purchase_dies_at_every_point(provider: PaymentServer, capsys: pytest.CaptureFixture[str]) -> None:
    count = sweep_purchase(
        provider, prepare=lambda: buy(buyer(provider), stock(3), 2) and None, act=work, ends={State.COMPLETED}
    )
    report("a purchase that goes well", count, capsys)


def test_a_purchase_that_is_refunded_dies_at_every_point(
    provider: PaymentServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer is lost, the reservation runs out, the bottles are gone: it is looked up, refunded and told."""

    def prepare() -> None:
        provider.script = PaymentScript("confirm: taken-reset")
        purchase = buy(buyer(provider), stock(3), 2)
        work_until_taken(provider, purchase)
        later(purchase, minutes=1)
        upkeep_now()
        stock(0)
        at_once()
        provider.script = PaymentScript()

    # Its mail dies at every point above.
    count = sweep_purchase(
        provider, prepare=prepare, act=lambda: drain(["purchase-payment"]), ends={State.REFUNDED}, bottles=0
    )
    report("a purchase that is refunded", count, capsys)


def test_the_answer_to_each_request_is_lost_once(provider: PaymentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third mode: what was asked is done, and nobody hears of it; the process lives on."""
    send, asked, lost = requests.Session.send, 0, 0

    def forgetful(self: Any, *given: Any, **more: Any) -> Any:
        nonlocal asked
        answer = send(self, *given, **more)
        asked += 1
        if asked == lost:
            raise requests.ConnectionError("the answer was lost")
        return answer

    monkeypatch.setattr(requests.Session, "send", forgetful)
    for lost in range(1, 30):
        wipe(provider)
        provider.script = PaymentScript("confirm: taken-reset")
        purchase, asked = buy(buyer(provider), stock(3), 2), 0
        work()
        later(purchase, minutes=1)
        upkeep_now()
        buy(buyer(provider, "bob"), StockItem.objects.get(), 2)
        work(waits=True)
        # Without an answer to its opening it was never confirmed.
        assert state_of(purchase) is (State.RELEASED if lost == 1 else State.REFUNDED), lost
        assert not DeadLetter.objects.exists()
        check_books(provider, bottles={StockItem.objects.get().pk: 3})
        if asked < lost:
            break
    assert 8 < lost < 29, lost


def test_buying_dies_at_every_point(provider: PaymentServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Until its COMMIT nothing is reserved; the same form sent again is the same purchase."""
    token = "0123456789abcdef" * 2
    users: list[Any] = []

    def prepare() -> None:
        stock(3)
        users[:] = [buyer(provider)]

    def send() -> None:
        buy(users[0], StockItem.objects.get(), 2, token=token)

    def fresh() -> None:
        wipe(provider)
        prepare()

    def check_end(where: str) -> None:
        assert Purchase.objects.count() == 1, where
        check_books(provider, bottles={StockItem.objects.get().pk: 3})

    def half() -> None:
        reserved = StockItem.objects.get().reserved
        assert reserved == 2 * Purchase.objects.count()

    def recover() -> None:
        send()
        work(waits=True)

    count = sweep(
        prepare=fresh,
        act=lambda these: run_under(these, send),
        check_after_crash=half,
        recover=recover,
        check_end=check_end,
    )
    report("buying", count, capsys)


def report(name: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\ncrash points: {name}: {count}")
    assert count > 3
    page.hold(name, count)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_provider_does_both_ledgers_agree_in_the_end(provider: PaymentServer, seed: int) -> None:
    """Seeded: declines, lost answers before and after the effect, stored 500s, refunds that fail, reservations that run
    out in between, and a person who now and then has one undone."""
    dice = random.Random(seed)
    kinds = ["decline", "reset", "taken-reset", "500", "taken-error", "503:0", "429:0", "pending", "refund-fails"]
    provider.script = Chaos(seed, 0.5, kinds, until=150)
    item = stock(12)
    people = [buyer(provider, f"p{n}") for n in range(12)]
    for user in people:
        purchase = buy(user, item, dice.choice((1, 1, 2))) if item.free >= 2 else None
        item.refresh_from_db()
        if dice.random() < 0.4:
            work()
        if purchase and dice.random() < 0.5:
            later(purchase, minutes=1)
        if purchase and dice.random() < 0.2:
            with_person(purchase, Event.COMPENSATE)
        upkeep_now()
    while Delivery.objects.filter(subscription__name__startswith="purchase-").exists():
        for pk in list(provider.bank.intents):
            if provider.bank.intents[pk]["status"] == "processing":
                provider.bank.succeed(pk)
        for refund in list(provider.bank.refunds.values()):
            if refund["status"] == "pending":
                provider.bank.end_refund(refund["id"], "succeeded")
        at_once()
        work()
        for row in Purchase.objects.filter(state__in=["charge_unclear", "refund_unclear"]):
            with_person(row, Event.RESUME)
    states = Counter(Purchase.objects.values_list("state", flat=True))
    assert set(states) <= {State.COMPLETED, State.RELEASED, State.REFUNDED}, states
    check_books(provider, bottles={item.pk: 12})


def with_person(purchase: Purchase, event: Event) -> None:
    with suppress(RefusedError):  # it has ended meanwhile
        services.intervene(purchase_id=purchase.pk, event=event, by="1", note="n", now=timezone.now())
