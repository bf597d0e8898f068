"""Carries a plan out: each strike when it is due, in a thread of its own, so that several faults are there at once."""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence

from tests.chaos import faults, payment_faults
from tests.chaos.faults import DONE, NOTHING, NothingDoneError, Scene
from tests.chaos.plan import RHYTHM, Strike
from winecellar.demo.mail_script import Script

HEALING_SECONDS = 180.0
FAULTS = faults.FAULTS | payment_faults.FAULTS
assert set(FAULTS) == set(RHYTHM)


class Nemesis:
    """`counts`: strikes that did something, by fault and by mode; `broken`: what went wrong in the nemesis itself."""

    def __init__(self, scene: Scene, strikes: Sequence[Strike]) -> None:
        self.scene, self.strikes = scene, strikes
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        self._threads: list[threading.Thread] = []

    def run(self, seconds: float, tell: Callable[[float], None] = lambda left: None) -> None:
        """Strike for so long; then everything heals, and only then it returns. `tell`: how long it still takes."""
        began = time.monotonic()

        def until(at: float) -> None:
            while (left := began + at - time.monotonic()) > 0:
                tell(began + seconds - time.monotonic())
                time.sleep(min(left, 0.5))

        for strike in self.strikes:
            until(strike.at)
            thread = threading.Thread(target=self._strike, args=(strike,), name=strike.fault, daemon=True)
            thread.start()
            self._threads.append(thread)
        until(seconds)
        self.scene.stopping.set()
        for thread in self._threads:
            thread.join(HEALING_SECONDS)
            if thread.is_alive():
                self.broken.append(f"{thread.name} did not end")
        self.scene.stopping.clear()
        self.scene.site.provider.script = Script()
        if self.scene.site.payments:
            self.scene.site.payments.tell("calm")

    def _strike(self, strike: Strike) -> None:
        note = self.scene.history.note
        began = time.monotonic()
        try:
            FAULTS[strike.fault](self.scene, strike)
        except NothingDoneError as why:
            note("nemesis", f"strike: {strike.fault}", NOTHING, str(strike.number), why=str(why))
            return
        except Exception:
            self.broken.append(f"{strike.fault} {strike.mode}: {traceback.format_exc(limit=-3)}")
            return
        self.counts[strike.fault] += 1
        if strike.mode:
            self.counts[f"{strike.fault}: {strike.mode}"] += 1
        took = round(time.monotonic() - began, 3)
        note("nemesis", f"strike: {strike.fault}", DONE, str(strike.number), mode=strike.mode, seconds=took)
