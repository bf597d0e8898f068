"""Routes of the benchmarks: a no-op, the product's own price history, and three subscriptions of one event."""

from collections.abc import Sequence

from jobs.messages import Message
from jobs.subscriptions import Route
from pricing import history
from pricing.events import PRICE_CHANGED
from tests.benchmarks.peers.counting import seen_many


def nothing(messages: Sequence[Message]) -> None:
    """The no-op that the peers' benchmarks run."""
    seen_many(len(messages), (message.body["i"] for message in messages))


def append(messages: Sequence[Message]) -> None:
    seen_many(len(messages), ())
    history.append(messages)


ROUTES = [
    Route("noop", ("bench.noop",), nothing, ordered=True, batch=500),
    Route("price-history", (PRICE_CHANGED,), append, ordered=True, batch=500),
    *(Route(f"fan-out-{number}", ("bench.fan_out",), nothing, ordered=True) for number in (1, 2, 3)),
]
