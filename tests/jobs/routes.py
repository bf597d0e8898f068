"""Subscriptions for the queue's own tests: effects are rows in one table, or calls of a function the test sets."""

import ctypes
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection

from jobs.messages import Message
from jobs.subscriptions import External, Route

# What the handlers do besides recording; a test replaces these.
before_effect: list[Callable[[Sequence[Message]], None]] = []
perform_with: list[Callable[[Any], Any]] = []


def _fault(body: dict[str, Any]) -> None:
    """What a message may do to its worker; only in processes started with QUEUE_FAULTS, never in the test's own."""
    if not os.environ.get("QUEUE_FAULTS"):
        return
    match body.get("fault"):
        case "exit":
            os._exit(1)
        case "segfault":
            ctypes.string_at(0)
        case "sys.exit":
            sys.exit(1)
        case "loop":
            while True:
                pass
        case "recursion":
            _dig(0)
        case "memory":
            resource.setrlimit(resource.RLIMIT_AS, (2 * 1024**3, 2 * 1024**3))
            bytearray(8 * 1024**3)
        case "sleep":
            time.sleep(5)
        case "slow":
            time.sleep(0.005)
        case "nap":
            time.sleep(0.7)


def _dig(depth: int) -> int:
    return _dig(depth + 1) + 1


def record_effects(messages: Sequence[Message]) -> None:
    for message in messages:
        _fault(message.body)
    for hook in before_effect:
        hook(messages)
    _write(messages)


def _write(messages: Sequence[Message]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO test_effect (event_id, key, seq, receive_count) VALUES (%s, %s, %s, %s)",
            [(m.event_id, m.key, m.body.get("seq"), m.receive_count) for m in messages],
        )


def prepare(messages: Sequence[Message]) -> list[Any]:
    return [None if m.body.get("unwanted") else m.body for m in messages]


def perform(task: Any) -> Any:
    _fault(task)
    for hook in perform_with:
        hook(task)
    return task


def record(pairs: Sequence[tuple[Message, Any]]) -> None:
    _write([message for message, result in pairs if result is not None])


ROUTES = [
    Route("strict", ("thing.happened",), record_effects, ordered=True, partitions=4, batch=20),
    Route("second", ("thing.happened",), record_effects, ordered=True, partitions=2, batch=20),
    Route("loose", ("do_loosely",), record_effects, ordered=False, partitions=2, batch=20),
    Route(
        "outside", ("do_outside",), External(prepare, perform, record, at_once=4), ordered=False, partitions=2, batch=20
    ),
]
