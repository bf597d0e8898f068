"""A merchant for the drill: `python -m tests.failover.feed fill`, or `send 1 20`: requests 1 to 20, each under its key.

Speaks to the feed as it is served, without a web server; prints what came of it as one line of JSON.
"""

# ruff: noqa: E402 (Django is set up before its models are imported)
from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import django

django.setup()
from django.test import Client
from django.utils import timezone

from pricing.keys import create_key
from tests.cast import alert, merchant, wine

WINES = 5
FIRST = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


def fill(key_file: Path) -> dict[str, int]:
    for number in range(WINES):
        alert("150.00", wine=wine(str(number)))
    key_file.write_text(create_key(merchant=merchant(), note="", now=timezone.now())[1])
    return {"wines": WINES}


def send(key_file: Path, first: int, last: int) -> dict[str, int]:
    """Request n prices each wine at 100 + n dollars, at the minute n."""
    told = {"taken": 0, "duplicate": 0}
    for number in range(first, last + 1):
        at = (FIRST + timedelta(minutes=number)).isoformat()
        rows = [
            {"wine_id": f"wn_{n}", "price": f"{100 + number}.00", "currency": "USD", "occurred_at": at}
            for n in range(WINES)
        ]
        answer = Client(SERVER_NAME="localhost").post(
            "/feeds/v1/price-changes",
            json.dumps({"observations": rows}),
            content_type="application/json",
            headers={"Authorization": f"Bearer {key_file.read_text()}", "Idempotency-Key": f"request-{number}"},
        )
        if answer.status_code != 202:
            raise SystemExit(f"{answer.status_code} {answer.content!r}")
        told["duplicate" if answer.json()["duplicate"] else "taken"] += 1
    return told


if __name__ == "__main__":
    where, verb, *numbers = sys.argv[1:]
    print(json.dumps(fill(Path(where)) if verb == "fill" else send(Path(where), *map(int, numbers))), flush=True)
