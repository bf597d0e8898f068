"""Lets the market move and the merchants say so: single prices at random moments, and one merchant's nightly refresh
every few seconds, a night being that short here.

Guarantee: once the thread has ended after `finish`, every price has been answered. No Django. Called by orchestra.py.
"""

from __future__ import annotations

import itertools
import random
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from winecellar.demo.feed_client import FeedClient
from winecellar.demo.market import Listing, Market, Quote
from winecellar.demo.merchant import Merchant, Tagged
from winecellar.demo.tally import Tally

SECONDS_BETWEEN_NIGHTS = 12.0
FIRST_NIGHT = 5.0
LONGEST_SLEEP = 0.2
# The course's own wine and merchant open the demo with a promotion.
OPENING = ("wn_4417", "mch_082")


class Feeding(threading.Thread):
    """`rate` is ordinary price changes per second, all merchants together; the nights come on top."""

    def __init__(
        self,
        *,
        seed: int,
        rate: float,
        listings: Sequence[Listing],
        endings: Mapping[str, tuple[int, ...]],
        clients: Mapping[str, FeedClient],
        tally: Tally,
    ) -> None:
        super().__init__(name="market", daemon=True)
        self._market = Market(seed=seed, listings=listings, endings=endings)
        self._clock = random.Random(seed)
        self._rate = rate
        run_id = f"demo-{secrets.token_hex(6)}"
        self._merchants = {
            merchant_id: Merchant(merchant_id=merchant_id, client=client, tally=tally, run_id=run_id)
            for merchant_id, client in clients.items()
        }
        self._over = threading.Event()

    def run(self) -> None:
        for merchant in self._merchants.values():
            merchant.start()
        self._let_the_market_move()
        for merchant in self._merchants.values():
            merchant.finish()
        for merchant in self._merchants.values():
            merchant.join()

    def finish(self) -> None:
        """No further prices. The thread ends when those sent are answered."""
        self._over.set()

    def abandon(self) -> None:
        """Stop at once, whatever has no answer yet."""
        self._over.set()
        for merchant in self._merchants.values():
            merchant.abandon()

    def _let_the_market_move(self) -> None:
        began = time.monotonic()
        if OPENING[1] in self._merchants:
            self._tell([self._market.promote(*OPENING)])
        next_move, next_night = began, began + FIRST_NIGHT
        nights = itertools.cycle(self._merchants)
        while not self._over.is_set():
            now = time.monotonic()
            if now >= next_night:
                self._tell(self._market.refresh(next(nights)), nightly=True)
                next_night += SECONDS_BETWEEN_NIGHTS
            if now >= next_move:
                self._tell([self._market.next_move()])
                next_move += self._clock.expovariate(self._rate)
            self._over.wait(min(max(min(next_move, next_night) - time.monotonic(), 0.0), LONGEST_SLEEP))

    def _tell(self, quotes: Sequence[Quote], *, nightly: bool = False) -> None:
        now = datetime.now(UTC)
        by_merchant: dict[str, list[Tagged]] = {}
        for quote in quotes:
            by_merchant.setdefault(quote.merchant_id, []).append(Tagged(quote, now, nightly))
        for merchant_id, prices in by_merchant.items():
            self._merchants[merchant_id].send(prices)
