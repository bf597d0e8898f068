"""What every Python peer's script has in common: its commands. `seen` is for its handler to call first.

A script makes one object with `setup`, `connect`, `add_many`, `add` and `work` (each may be a coroutine function) and
hands it to `main`. Runs in the peers' virtualenv, so it imports nothing of ours.

  setup             make the tables
  fill N            add N jobs with the bulk call; prints {"seconds": …}
  add N             add N jobs one by one, each committed by itself; prints {"seconds": …}
  pace N RATE       add N jobs at a rate per second; prints {"committed": [[i, time], …]}
  work              handle jobs until told to stop
"""

import asyncio
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from counting import seen

__all__ = ["URL", "main", "seen"]

URL = os.environ["BENCH_URL"]
CHUNK = 1000  # jobs per bulk call, the same for all


async def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    result = function(*arguments)
    return await result if inspect.isawaitable(result) else result


async def _pace(peer: Any, count: int, rate: float) -> dict[str, Any]:
    committed = []
    due = time.monotonic()
    for number in range(count):
        due += 1 / rate
        if (wait := due - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        await _call(peer.add, number)
        committed.append((number, time.time()))
    return {"committed": committed}


async def _add(peer: Any, count: int) -> dict[str, Any]:
    began = time.perf_counter()
    for number in range(count):
        await _call(peer.add, number)
    return {"seconds": time.perf_counter() - began}


async def _fill(peer: Any, count: int) -> dict[str, Any]:
    began = time.perf_counter()
    for first in range(0, count, CHUNK):
        await _call(peer.add_many, range(first, min(first + CHUNK, count)))
    return {"seconds": time.perf_counter() - began}


async def _run(peer: Any, command: str, arguments: list[str]) -> None:
    if command == "setup":
        await _call(peer.setup)
        result: dict[str, Any] = {}
    else:
        await _call(peer.connect)
        if command == "fill":
            result = await _fill(peer, int(arguments[0]))
        elif command == "add":
            result = await _add(peer, int(arguments[0]))
        else:
            result = await _pace(peer, int(arguments[0]), float(arguments[1]))
    print(json.dumps(result), flush=True)
    os._exit(0)  # pools and listeners of the peer need no farewell here


def main(peer: Any) -> None:
    command, *arguments = sys.argv[1:]
    if command != "work":
        asyncio.run(_run(peer, command, arguments))
    elif inspect.iscoroutinefunction(peer.work):
        asyncio.run(peer.work())
    else:
        peer.work()
