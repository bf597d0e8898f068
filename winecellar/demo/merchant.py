"""A simulated merchant: one thread that sends its prices over HTTP with its feed key, as a careful client does.

Guarantee: an answer that got lost, or a 429 or 503, is followed by the same request with the same Idempotency-Key;
every so often a request that was answered is sent again, and must come back as a duplicate. Prices of one merchant
go out in order, one request at a time; what has piled up goes as one batch. No Django. Started by feeding.py.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from winecellar.demo.feed_client import Answer, FeedClient, Observation, write_body
from winecellar.demo.market import Quote
from winecellar.demo.tally import PriceTaken, Receipt, Tally

LARGEST_BATCH = 200
RETRY_EVERY = 12  # requests
LOST_ANSWER_WAIT = 0.5


@dataclass(frozen=True, slots=True)
class Tagged:
    """A price and when it came to be. `nightly`: part of the refresh of all that the merchant sells."""

    quote: Quote
    occurred_at: datetime
    nightly: bool = False


class Merchant(threading.Thread):
    """`send` from any thread; `finish` lets it send what it has; `abandon` lets it end after the request at hand."""

    def __init__(self, *, merchant_id: str, client: FeedClient, tally: Tally, run_id: str) -> None:
        super().__init__(name=merchant_id, daemon=True)
        self.merchant_id = merchant_id
        self._client = client
        self._tally = tally
        self._run_id = run_id
        self._waiting: queue.SimpleQueue[Sequence[Tagged] | None] = queue.SimpleQueue()
        self._abandoned = threading.Event()
        self._requests = 0

    def send(self, prices: Sequence[Tagged]) -> None:
        self._waiting.put(prices)

    def finish(self) -> None:
        self._waiting.put(None)

    def abandon(self) -> None:
        self._abandoned.set()
        self.finish()

    def run(self) -> None:
        open_for_more = True
        while open_for_more:
            prices, open_for_more = self._take()
            for start in range(0, len(prices), LARGEST_BATCH):
                self._deliver(prices[start : start + LARGEST_BATCH])
        self._client.close()

    def _take(self) -> tuple[list[Tagged], bool]:
        """Wait for prices and take all that has piled up; False once there will be no more."""
        prices: list[Tagged] = []
        while True:
            try:
                more = self._waiting.get(block=not prices)
            except queue.Empty:
                return prices, True
            if more is None:
                return prices, False
            prices += more

    def _deliver(self, batch: Sequence[Tagged]) -> None:
        self._requests += 1
        key = f"{self._run_id}-{self.merchant_id}-{self._requests}"
        body = write_body([Observation(p.quote.wine_id, p.quote.new, p.occurred_at) for p in batch])
        self._tally.sending(len(batch))
        answer = self._until_answered(body, key)
        if answer is None:
            self._tally.abandoned(len(batch))
        elif not answer.accepted:
            self._tally.refused(len(batch), f"{self.merchant_id}: {answer.complaint}")
        else:
            self._tally.took(_receipt(self.merchant_id, batch, answer))
            if self._requests % RETRY_EVERY == 1:
                self._send_again(body, key, answer)

    def _send_again(self, body: bytes, key: str, first: Answer) -> None:
        """As a client does that is not sure whether its request arrived."""
        again = self._until_answered(body, key)
        if again is not None:
            same = again.accepted and again.body.get("results") == first.body.get("results")
            self._tally.retried(duplicate=same and again.body.get("duplicate") is True)

    def _until_answered(self, body: bytes, key: str) -> Answer | None:
        """The answer to this request, sent as often as it takes; None when told to stop before there was one."""
        while not self._abandoned.is_set():
            try:
                answer = self._client.post(body, idempotency_key=key)
            except OSError:
                self._tally.lost_answer()
                self._abandoned.wait(LOST_ANSWER_WAIT)
                continue
            if not answer.come_again:
                return answer
            self._tally.waited()
            self._abandoned.wait(answer.wait_seconds)
        return None


def _receipt(merchant_id: str, batch: Sequence[Tagged], answer: Answer) -> Receipt:
    """The answer's results are in the order of the observations."""
    prices = tuple(
        PriceTaken(
            wine_id=price.quote.wine_id,
            merchant_id=merchant_id,
            old=price.quote.old,
            new=price.quote.new,
            promotion=price.quote.promotion,
            event_id=result.get("event_id") if result["applied"] else None,
            reason=result.get("reason"),
        )
        for price, result in zip(batch, answer.body["results"], strict=True)
    )
    return Receipt(merchant_id, prices, answer.answered_at, nightly=any(price.nightly for price in batch))
