"""Strikes on paying (F26): a provider that declines, hangs, fails or lies, goes away, reports in any order; and
operators who have a purchase undone, or go on, by two clicks at once. As in faults.py, all that varies comes with the
strike.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from django.db import Error as DatabaseError
from django.utils import timezone

from tests.chaos.bank import Payments
from tests.chaos.faults import NothingDoneError, Scene, close
from tests.chaos.plan import Strike
from tests.chaos.site import send
from winecellar.purchases import services
from winecellar.purchases.models import Purchase
from winecellar.purchases.rules import NEEDS_PERSON, Event, RefusedError, State

WAITS = 8.0  # seconds in which somebody will buy something
TRIES = 20
UNDONE = 3
# So that some are charged already, and nobody here knows it yet, when they are to be undone; nor is that easy.
SLOW_SECONDS = 3
SLOW = f"confirm: taken-hang:{SLOW_SECONDS}*5; refund: taken-reset, pending, 500"
UNDER_WAY = Purchase.objects.exclude(asked_at=None).filter(state__in=[State.CHARGING, State.ASKING, State.LAPSED])
FOR_A_PERSON = Purchase.objects.filter(state__in=[state.value for state in NEEDS_PERSON])


def payments(scene: Scene, strike: Strike) -> None:
    """The provider follows another script, from its next request of each kind on."""
    _payments(scene).tell(f"script {strike.mode}")


def freeze_payments(scene: Scene, strike: Strike) -> None:
    """Connections are taken, and nothing is said; afterwards all of it is done at once."""
    pid = _payments(scene).process.pid
    send(pid, signal.SIGSTOP)
    try:
        scene.pause(strike.seconds)
    finally:
        send(pid, signal.SIGCONT)


def repeat_reports(scene: Scene, strike: Strike) -> None:
    """The last forty, twice each, in any order."""
    _payments(scene).tell("again")


def operator(scene: Scene, strike: Strike) -> None:
    """Of what waits for a person or is under way, one; two clicks at once."""
    event = Event(strike.mode)
    if event is Event.COMPENSATE:
        _payments(scene).tell(f"first {SLOW}")
        scene.pause(SLOW_SECONDS / 2)
    purchase = _chosen(scene, strike, event)
    clicks = [threading.Thread(target=decide, args=(scene, f"cashier-{n}", purchase, event)) for n in range(2)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()


def decide(scene: Scene, by: str, purchase: int, event: Event) -> None:
    """Who gets no answer clicks again."""
    id_ = str(purchase)
    for _ in range(TRIES):
        scene.history.note(by, "decide", "invoke", id_, event=event.value)
        try:
            services.intervene(purchase_id=purchase, event=event, by=by, note="chaos", now=timezone.now())
        except RefusedError as error:
            return scene.history.note(by, "decide", "fail", id_, event=event.value, why=str(error)[:80])
        except DatabaseError as error:
            scene.history.note(by, "decide", "unknown", id_, event=event.value, why=str(error)[:80])
            scene.pause(0.3)
        else:
            return scene.history.note(by, "decide", "ok", id_, event=event.value)
        finally:
            close()
    return None


def undo_some(scene: Scene) -> None:
    """While all is well, so that every run has refunds, whatever its strikes met."""
    for number in range(UNDONE):
        with suppress(NothingDoneError):
            operator(scene, Strike(0.0, "operator", 0.0, 0.0, Event.COMPENSATE.value, number))


def resume_all(scene: Scene) -> None:
    """Whatever waits for a person goes on, as somebody would have it who comes to work after the storm."""
    for purchase in _ids(FOR_A_PERSON):
        decide(scene, "cashier-last", purchase, Event.RESUME)


def _chosen(scene: Scene, strike: Strike, event: Event) -> int:
    """Few purchases are under way at a time, if all is well: so one is waited for."""
    wanted = FOR_A_PERSON if event is Event.RESUME else UNDER_WAY
    until = time.monotonic() + (0.0 if event is Event.RESUME else WAITS)
    while True:
        try:
            some = _ids(wanted)
        except DatabaseError:
            some = []
        if some:
            return some[int(strike.choice * len(some))]
        if time.monotonic() > until or scene.stopping.is_set():
            raise NothingDoneError("no such purchase")
        scene.pause(0.01)


def _ids(wanted: object) -> Sequence[int]:
    try:
        return list(wanted.all().order_by("pk").values_list("pk", flat=True))  # type: ignore[attr-defined]
    finally:
        close()


def _payments(scene: Scene) -> Payments:
    assert scene.site.payments is not None
    return scene.site.payments


FAULTS: dict[str, Callable[[Scene, Strike], None]] = {
    fault.__name__: fault for fault in (payments, freeze_payments, repeat_reports, operator)
}
