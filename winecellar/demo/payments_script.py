"""How a scripted payment provider behaves: for each kind of request its behaviours in order, then well for ever. Pure.

    confirm: decline, ok; refund: 500*2         two kinds of request, each with a script
    ok                 does it and says so
    decline            the bank says no
    hang:30            does nothing, and says nothing for thirty seconds
    taken-hang:30      does it, and says nothing for thirty seconds
    reset, taken-reset   cuts the connection before or after it does it
    500, 503, 429:2    does nothing; a 5xx is kept under the request's key and said again, as Stripe does
    taken-error        does it, and says 500, now and whenever the key comes again
    pending            does it later: processing now
    refund-fails       the refund is taken, and fails at the bank

The kinds of request: open, confirm, cancel, refund, look, card.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

from winecellar.demo.mail_script import Behaviour, read

REQUESTS = ("open", "confirm", "cancel", "refund", "look", "card")
KINDS = {
    *("ok", "decline", "hang", "taken-hang", "reset", "taken-reset", "taken-error", "pending", "refund-fails"),
}
WELL = Behaviour()
NOTHING_DONE = {"hang", "reset"}  # and statuses


def has_effect(behaviour: Behaviour) -> bool:
    return behaviour.status is None and behaviour.kind not in NOTHING_DONE


class PaymentScript:
    """Hands the behaviours out, one per request; threads may share it. Raises ValueError in words."""

    def __init__(self, text: str = "") -> None:
        self._lock = threading.Lock()
        self._behaviours: dict[str, list[Behaviour]] = {}
        for part in filter(None, (part.strip() for part in text.split(";"))):
            request, _, script = part.partition(":")
            if request.strip() not in REQUESTS:
                raise ValueError(f"{request!r} is no kind of request; there are {', '.join(REQUESTS)}")
            self._behaviours.setdefault(request.strip(), []).extend(read(script, KINDS))

    def next(self, request: str) -> Behaviour:
        with self._lock:
            waiting = self._behaviours.get(request)
            return waiting.pop(0) if waiting else WELL


class Chaos:
    """Any of these behaviours in this share of all requests, the same again for the same seed, and then well."""

    def __init__(self, seed: int, share: float, kinds: Sequence[str], *, until: int) -> None:
        self._random, self._share = random.Random(seed), share
        self._kinds, self._left, self._lock = [read(kind, KINDS)[0] for kind in kinds], until, threading.Lock()

    def next(self, request: str) -> Behaviour:
        with self._lock:
            self._left -= 1
            if self._left < 0 or self._random.random() >= self._share:
                return WELL
            return self._random.choice(self._kinds)
