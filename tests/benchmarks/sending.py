"""Clients that cost little: a kept socket, bytes made beforehand, one process each. They time each answer.

Imports no Django: a process of its own must start quickly and do nothing but send.
"""

from __future__ import annotations

import json
import os
import random
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing import get_context

HEAD = (
    "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Type: application/json\r\n"
    "Content-Length: {length}\r\n\r\n"
)


@dataclass(frozen=True)
class Task:
    """What one sender does: single prices of these wines, as fast as it can, or at `rate` a second; for `seconds`.

    At a rate the latency of an answer runs from when its request was due, so that a stall is not left out.
    """

    port: int
    path: str
    key: str
    wines: Sequence[str]
    seconds: float
    rate: float | None = None
    idempotent: bool = True
    seed: int = 0


@dataclass
class Sent:
    """Latencies in ms; `events`: event id → when its answer was there, in seconds since 1970."""

    latencies: list[float] = field(default_factory=list)
    events: dict[str, float] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    seconds: float = 0.0


def send_all(tasks: Sequence[Task]) -> list[Sent]:
    """All tasks at once, each in a process of its own."""
    with ProcessPoolExecutor(len(tasks), mp_context=get_context("spawn")) as pool:
        start = time.time() + 2.0  # when all of them are there
        return list(pool.map(_send, tasks, [start] * len(tasks)))


def _send(task: Task, start: float) -> Sent:
    sent, requests = Sent(), _requests(task)
    time.sleep(max(start - time.time(), 0))
    began = due = time.perf_counter()
    chance = random.Random(task.seed)
    with socket.create_connection(("127.0.0.1", task.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while (now := time.perf_counter()) < began + task.seconds:
            if task.rate:
                due += chance.expovariate(task.rate)  # as arrivals are: not in step
                time.sleep(max(due - now, 0))
                if due >= began + task.seconds:
                    break
            asked = due if task.rate else now
            connection.sendall(next(requests))
            status, body = _answer(connection)
            sent.latencies.append(1000 * (time.perf_counter() - asked))
            if status != 202:
                sent.refused.append(f"{status} {body[:200]!r}")
            elif task.rate:  # the others are after speed alone
                sent.events.update(dict.fromkeys(json.loads(body)["event_ids"], time.time()))
    sent.seconds = time.perf_counter() - began
    return sent


def _requests(task: Task) -> Iterator[bytes]:
    """Each wine in its turn, each time at another price, so that each request is a change."""
    headers = f"Authorization: Bearer {task.key}\r\n" if task.key else ""
    run, number = os.urandom(6).hex(), 0
    while True:
        wine = task.wines[number % len(task.wines)]
        body = (
            f'{{"wine_id": "{wine}", "price": "{100 + (number // len(task.wines)) % 2 * 50}.{number % 100:02d}",'
            f' "currency": "USD", "occurred_at": "{datetime.now(UTC).isoformat()}"}}'
        )
        named = f"{headers}Idempotency-Key: {run}-{number}\r\n" if task.idempotent else headers
        yield (HEAD.format(path=task.path, headers=named, length=len(body)) + body).encode()
        number += 1


def _answer(connection: socket.socket) -> tuple[int, bytes]:
    said = b""
    while b"\r\n\r\n" not in said:
        said += _more(connection)
    head, _, body = said.partition(b"\r\n\r\n")
    (length,) = (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += _more(connection)
    return int(head[9:12]), body


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65_536)
    if not data:
        raise ConnectionError("the server hung up")
    return data
