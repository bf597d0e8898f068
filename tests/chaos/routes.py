"""The product's subscriptions, and two of the chaos's own: what is published directly, with a row for each effect, and
among it messages that do what no handler of the product does to its worker.

`NAP_LOG` (in the environment CHAOS_NAPS): a nap's beginning is written there before anything of it is committed, so
that somebody outside can see who runs it, and when another begins it again.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from django.db import connection

from jobs.errors import PermanentError, TransientError
from jobs.messages import Message, dumps
from jobs.subscriptions import Route
from winecellar.routes import ROUTES as PRODUCT

COUNTED, POISONED, NAPPED = "chaos.counted", "chaos.poisoned", "chaos.napped"
MEMORY_LIMIT, MEMORY_ASKED = 2 * 1024**3, 8 * 1024**3
RECORD = """
INSERT INTO chaos_effect (event_id, key, seq, message_id, receive_count)
SELECT event_id, key, seq, message_id, receive_count FROM jsonb_to_recordset(%s::jsonb) AS e (
    event_id text, key text, seq bigint, message_id bigint, receive_count int)
"""
REDRIVEN = "SELECT EXISTS (SELECT FROM jobs_deadletter WHERE event_id = %s AND redrive_id IS NOT NULL)"


def apply(messages: Sequence[Message]) -> None:
    """One row for each message; poison takes effect first."""
    for message in messages:
        if message.type == POISONED:
            FAULTS[str(message.body["fault"])](message)
        elif message.type == NAPPED:
            _nap(message)
    rows = [
        {
            "event_id": message.event_id,
            "key": message.key,
            "seq": message.body.get("seq"),
            "message_id": message.message_id,
            "receive_count": message.receive_count,
        }
        for message in messages
    ]
    with connection.cursor() as cursor:
        cursor.execute(RECORD, [dumps(rows)])


def _permanent(message: Message) -> None:
    raise PermanentError("chaos: this can never succeed")


def _transient(message: Message) -> None:
    raise TransientError("chaos: not now")


def _unknown(message: Message) -> None:
    raise ValueError("chaos: nobody foresaw this")


def _mendable(message: Message) -> None:
    """Fails until a person has redriven it, as what a release mends does."""
    with connection.cursor() as cursor:
        cursor.execute(REDRIVEN, [message.event_id])
        (redriven,) = cursor.fetchone()
    if not redriven:
        raise PermanentError("chaos: broken until somebody mends it")


def _exit(message: Message) -> None:
    os._exit(1)


def _sys_exit(message: Message) -> None:
    sys.exit(1)


def _segfault(message: Message) -> None:
    ctypes.string_at(0)


def _loop(message: Message) -> None:
    while True:
        pass


def _recursion(message: Message) -> None:
    _recursion(message)


def _memory(message: Message) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, before[1]))
    try:
        bytearray(MEMORY_ASKED)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _nap(message: Message) -> None:
    line = {"event_id": message.event_id, "pid": os.getpid(), "at": time.time(), "receive": message.receive_count}
    with Path(os.environ["CHAOS_NAPS"]).open("a") as naps:
        naps.write(json.dumps(line) + "\n")
    if message.receive_count == 1:
        time.sleep(float(message.body["seconds"]))


FAULTS: dict[str, Callable[[Message], None]] = {
    "permanent": _permanent,
    "transient": _transient,
    "unknown": _unknown,
    "mendable": _mendable,
    "recursion": _recursion,
    "memory": _memory,
    "sys.exit": _sys_exit,
    "exit": _exit,
    "segfault": _segfault,
    "loop": _loop,
}

ROUTES = [
    *PRODUCT,
    Route("chaos-strict", (COUNTED, POISONED), apply, ordered=True, partitions=16, batch=100),
    Route("chaos-naps", (NAPPED,), apply, ordered=False, partitions=1, batch=1),
]
