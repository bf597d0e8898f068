"""The merchant's side of POST /feeds/v1/price-changes: one kept-alive connection, JSON out, an answer back.

Guarantee: one request, one answer, or an OSError when the outcome is unknown; retrying is the caller's. No Django.
Called by merchant.py; each thread has its own client.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

PATH = "/feeds/v1/price-changes"
TIMEOUT_SECONDS = 10.0
NOT_NOW = {429, 503}


@dataclass(frozen=True, slots=True)
class Observation:
    """At this time this wine costs so much."""

    wine_id: str
    price_usd: Decimal
    occurred_at: datetime

    def as_json(self) -> dict[str, str]:
        return {
            "wine_id": self.wine_id,
            "price": f"{self.price_usd:.2f}",
            "currency": "USD",
            "occurred_at": self.occurred_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """What the feed said, and when it had said all of it. `wait_seconds` is its Retry-After on 429 and 503."""

    status: int
    body: dict[str, Any]
    answered_at: datetime
    wait_seconds: float = 0.0

    @property
    def accepted(self) -> bool:
        return self.status == 202

    @property
    def come_again(self) -> bool:
        return self.status in NOT_NOW

    @property
    def complaint(self) -> str:
        error = self.body.get("error", {})
        return f"{self.status} {error.get('code', '')} {error.get('field') or ''}: {error.get('message', '')}"


def write_body(observations: Sequence[Observation]) -> bytes:
    """One observation stands alone, several go as a list."""
    rows = [observation.as_json() for observation in observations]
    return json.dumps(rows[0] if len(rows) == 1 else {"observations": rows}).encode()


class FeedClient:
    """One merchant's connection with its feed key."""

    def __init__(self, *, host: str, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        self._key = key

    def post(self, body: bytes, *, idempotency_key: str) -> Answer:
        """Send one request. Raises OSError when there is no whole answer: the prices may have been taken or not."""
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "Idempotency-Key": idempotency_key,
        }
        try:
            self._connection.request("POST", PATH, body, headers)
            response = self._connection.getresponse()
            content = response.read()
        except http.client.HTTPException as error:
            self._connection.close()
            raise ConnectionError(f"no whole answer: {error!r}") from error
        except OSError:
            self._connection.close()
            raise
        answered_at = datetime.now(UTC)
        return Answer(response.status, _read(content), answered_at, _seconds(response.headers.get("Retry-After")))

    def close(self) -> None:
        self._connection.close()


def _read(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(retry_after: str | None) -> float:
    return float(retry_after) if retry_after and retry_after.isdigit() else 1.0
