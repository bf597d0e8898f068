"""Our side of the comparison, as a process of its own with the commands of the peers' scripts (peers/shape.py).

Publishes with the product's own `publish`; there is no `work`, for that is `manage.py run_worker`. The last argument
names the event: noop, price-history or fan-out.
"""

# ruff: noqa: E402 (Django is set up before its models are imported)
from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from typing import Any

import django

django.setup()
from django.core.management import call_command
from django.db import connection, transaction

from jobs.messages import NewMessage, new_event_id
from jobs.outbox import publish
from pricing.events import PRICE_CHANGED

KEYS = 5_000  # wines
CHUNK = 1_000  # events per bulk call, as for the peers


def message(kind: str, number: int) -> NewMessage:
    key = f"wn_{number % KEYS}"
    if kind != "price-history":
        return NewMessage(type=f"bench.{kind.replace('-', '_')}", key=key, body={"i": number})
    event_id = new_event_id()
    body = {
        "event_id": event_id,
        "type": PRICE_CHANGED,
        "occurred_at": "2026-03-14T09:12:04Z",
        "wine_id": key,
        "wine_name": "Ch. Montrose 2016",
        "merchant_id": "mch_082",
        "old_price_usd": 189.00,
        "new_price_usd": 154.00,
        "currency": "USD",
    }
    return NewMessage(type=PRICE_CHANGED, key=key, body=body, event_id=event_id)


def add(kind: str, numbers: Iterable[int]) -> None:
    with transaction.atomic():
        publish([message(kind, number) for number in numbers])


def fill(kind: str, count: int, chunk: int) -> dict[str, Any]:
    began = time.perf_counter()
    for first in range(0, count, chunk):
        add(kind, range(first, min(first + chunk, count)))
    return {"seconds": time.perf_counter() - began}


def pace(kind: str, count: int, rate: float) -> dict[str, Any]:
    committed = []
    due = time.monotonic()
    for number in range(count):
        due += 1 / rate
        time.sleep(max(due - time.monotonic(), 0.0))
        add(kind, [number])
        committed.append((number, time.time()))
    time.sleep(0.2)  # as a web process would, outlive the thread that notifies after the commit
    return {"committed": committed}


def main() -> None:
    command, *arguments, kind = sys.argv[1:]
    result: dict[str, Any] = {}
    if command == "setup":
        call_command("migrate", verbosity=0)
    else:
        connection.ensure_connection()
        count = int(arguments[0])
        if command == "pace":
            result = pace(kind, count, float(arguments[1]))
        else:
            result = fill(kind, count, CHUNK if command == "fill" else 1)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
