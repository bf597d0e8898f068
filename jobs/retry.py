"""What to do about a failure: classify it, then decide. Pure; the executors write what is decided here.

Permanent → dead letter at once. Transient → wait a random time in [0, base · 2^(n−1)] after receive n, never less than
the other side asked for. Unknown → the same, since throwing away the first unfamiliar failure would lose
recoverable work; the receive limit bounds it either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from jobs.errors import PermanentError, TransientError


class Kind(StrEnum):
    PERMANENT = "permanent"
    TRANSIENT = "transient"
    UNCLASSIFIED = "unclassified"
    CRASH = "crash"  # it took the worker down, or would have: no memory, no stack, an exit


# A handler that ends like this has broken its worker, even where Python could still catch it.
CRASHES = (MemoryError, RecursionError, SystemExit, KeyboardInterrupt, GeneratorExit)


class Cause(StrEnum):
    """Why a delivery became a dead letter; the values are those of DeadLetter.Cause."""

    PERMANENT = "permanent"
    EXHAUSTED = "exhausted"
    WORKER_CRASH = "worker_crash"


@dataclass(frozen=True)
class Retry:
    """`charged`: whether the receive counts."""

    delay: float  # seconds
    charged: bool = True


@dataclass(frozen=True)
class Bury:
    cause: Cause


def classify(error: BaseException, *, is_away: Callable[[BaseException], bool]) -> Kind:
    """`is_away` says whether a database error may pass by itself (jobs.database)."""
    if isinstance(error, PermanentError):
        return Kind.PERMANENT
    if isinstance(error, CRASHES):
        return Kind.CRASH
    if isinstance(error, TransientError | TimeoutError | ConnectionError) or is_away(error):
        return Kind.TRANSIENT
    return Kind.UNCLASSIFIED


def ceiling(receive_count: int, *, base: float) -> float:
    """The longest wait in seconds after receive `receive_count` (1-based): base · 1, 2, 4, 8, 16."""
    return float(base * 2 ** (receive_count - 1))


def decide(
    kind: Kind,
    *,
    receive_count: int,
    max_receives: int,
    base: float,
    retry_after: float,
    uniform: Callable[[float, float], float],
) -> Retry | Bury:
    """What becomes of a delivery whose receive number `receive_count` failed."""
    if kind is Kind.PERMANENT:
        return Bury(Cause.PERMANENT)
    if receive_count >= max_receives:
        return Bury(Cause.WORKER_CRASH if kind is Kind.CRASH else Cause.EXHAUSTED)
    return Retry(max(retry_after, uniform(0.0, ceiling(receive_count, base=base))))


def wait_for_other_side(
    *, age: float, retry_after: float, until_probe: float, longest: float, uniform: Callable[[float, float], float]
) -> Retry:
    """What becomes of a delivery that failed since the other side is away: it waits, and no receive is charged.

    A random time up to its `age` (seconds since it was published), so that the waits grow as the backoff's do without a
    count; at most `longest`. What failed while the breaker is open (`until_probe` > 0), the probe above all, comes back
    after the next probe is due: then that is made with another, if there is one, and a message which only itself cannot
    be sent does not stand in the way of the rest.
    """
    wait = uniform(0.0, min(max(age, 1.0), longest))
    if until_probe:
        wait = until_probe + uniform(1.0, max(min(until_probe, longest), 2.0))
    return Retry(max(wait, retry_after), charged=False)
