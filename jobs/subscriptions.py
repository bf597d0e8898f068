"""Subscriptions: declared in winecellar/routes.py, mirrored in jobs_subscription, which producers fan out from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any

from django.conf import settings

from jobs.messages import Message

# Applies the messages' effects set-wise, inside the transaction that also writes the ledger and acks.
Apply = Callable[[Sequence[Message]], None]


@dataclass(frozen=True)
class External:
    """A handler whose effect is outside our Postgres, so that no transaction may be open while it happens.

    prepare  messages → one task each, or None where the effect is no longer wanted; may read the database
    perform  one task → its result; runs in a thread, many at a time, and keeps away from the lane's database connection
    record   (message, result or None) pairs → written in the transaction that writes the ledger and acks
    """

    prepare: Callable[[Sequence[Message]], Sequence[Any]]
    perform: Callable[[Any], Any]
    record: Callable[[Sequence[tuple[Message, Any]]], None]
    at_once: int
    # After so long it hangs, and the worker is replaced; None: EXTERNAL_TIME_LIMIT. Its lease is renewed meanwhile.
    time_limit: timedelta | None = None
    # The other side by name: subscriptions that name the same one share a breaker (breaker.py). None: they have none.
    breaker: str | None = None


@dataclass(frozen=True)
class Route:
    """One subscription: what it receives, who handles it, how.

    `ordered`: one key's messages strictly in publication order, a failing one blocking only its key.
    `partitions`: how many lanes the keys are hashed into; used when the subscription is first created.
    `salt`: spreads each key over so many, for a consumer whose effects may be applied in any order (sums, counts): the
    last remedy for one hot key. It gives up that key's order, so it goes with `ordered=True` only within a salted key.
    `batch`: how many messages one claim takes at most.
    `promise`: how long after its publication a message's effect may come before an alarm says so; None:
    settings.ALERT_PROMISE. For work that takes long by its nature, and that nobody waits for.
    `check`: raises for a message that the handler would refuse whatever the state of the world; changes nothing. Asked
    before a dead letter is redriven.
    """

    name: str
    message_types: tuple[str, ...]
    handler: Apply | External
    ordered: bool
    partitions: int = 16
    batch: int = 500
    salt: int = 1
    promise: timedelta | None = None
    check: Callable[[Message], object] | None = None


@cache
def load_routes() -> dict[str, Route]:
    """The routes by name, from the module that settings.QUEUE_ROUTES names, as Django finds ROOT_URLCONF."""
    module = import_module(settings.QUEUE_ROUTES)
    return {route.name: route for route in module.ROUTES}
