"""Feeds the parsers: seeded, bounded in number and in time per input. What is found can be repeated by what is told."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tests.fuzz.mutate import mutated, mutated_document
from tests.fuzz.targets import Target

# Seconds of this process's own time, so that a busy machine hangs nothing. The largest input takes a fiftieth of it.
LONGEST = 2.0


class FoundError(AssertionError):
    """What a parser did that it has not declared, and how to see it again."""


class _Hang(BaseException):
    """Not an Exception: a parser that catches those must not catch this."""


@contextmanager
def bounded() -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise _Hang

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def nth_input(target: Target, seed: int, n: int) -> bytes:
    rng = random.Random(f"{target.name} {seed} {n}")
    if target.is_json and n % 4:  # three in four are whole documents that say something odd, or nothing gets far
        document = mutated_document(json.loads(rng.choice(target.seeds)), rng)
        return json.dumps(document, ensure_ascii=bool(n % 8)).encode("utf-8", "surrogatepass")
    data = mutated(target.seeds, rng)
    return target.pack(data) if target.pack and n % 2 else data


def feed(target: Target, data: bytes, *, called: str) -> bool:
    """Whether it was read; False for a refusal that the parser has declared. Raises FoundError."""
    try:
        with bounded():
            target.feed(data)
    except target.declared:
        return False
    except _Hang:
        raise FoundError(f"{called}: {LONGEST} s are over for {data[:500]!r} … ({len(data)} bytes)") from None
    except Exception as error:
        raise FoundError(f"{called}: {type(error).__name__}: {error}, by {data[:2000]!r}") from error
    return True


def fuzz(target: Target, *, count: int, seed: int, first: int = 0) -> tuple[int, int]:
    """How many inputs were read, and how many were refused as declared."""
    read = sum(
        feed(target, nth_input(target, seed, n), called=f"{target.name}, seed {seed}, input {n}")
        for n in range(first, first + count)
    )
    return read, count - read
