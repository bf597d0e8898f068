"""Routes of the benchmarks: a no-op, and the product's own price history."""

from collections.abc import Sequence

from jobs.messages import Message
from jobs.subscriptions import Route
from pricing import history
from pricing.events import PRICE_CHANGED


def nothing(messages: Sequence[Message]) -> None:
    """The no-op that the peers' benchmarks run."""


ROUTES = [
    Route("noop", ("bench.noop",), nothing, ordered=True, batch=500),
    Route("price-history", (PRICE_CHANGED,), history.append, ordered=True, batch=500),
]
