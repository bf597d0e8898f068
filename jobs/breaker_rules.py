"""When to stop asking another side that is unwell, when to try it again, with what. Pure; breaker.py keeps the row.

closed     everything goes
open       nothing goes until `probe_at`, later each time: a random wait around 5, 10, 20 … seconds, at most a minute
half-open  one probe is under way, by whoever holds its token; it closes the breaker or opens it again
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

# Counts are halved beyond so many times the failures that open it, so that what was long ago does not outweigh now.
REMEMBERED = 20


@dataclass(frozen=True)
class Limits:
    """Every number, from winecellar/settings.py."""

    failures: int  # so many open it, if no more went well since the first of them
    memory: timedelta  # a failure is forgotten after so long without another
    first: timedelta  # the wait before the first probe ...
    longest: timedelta  # ... and before any
    lease: timedelta  # a probe that has said nothing for so long is lost, with its worker


@dataclass(frozen=True)
class State:
    """A breaker's row. Closed while `opened_at` is None; `level` counts the waits since it was last well for long."""

    failed: int = 0
    succeeded: int = 0
    last_failed_at: datetime | None = None
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    probe_token: int | None = None
    probe_until: datetime | None = None
    level: int = 0

    @property
    def is_open(self) -> bool:
        return self.opened_at is not None

    @property
    def is_troubled(self) -> bool:
        """Whether successes count: while none has failed of late, nobody writes anything."""
        return self.failed > 0


def after_failure(
    state: State,
    *,
    now: datetime,
    retry_after: timedelta,
    token: int | None,
    limits: Limits,
    uniform: Callable[[float, float], float],
) -> State:
    """`token`: of the probe that failed, if it was one. `retry_after`: how long the other side asked us to wait."""
    if state.is_open:
        if token is not None and token == state.probe_token:
            return _wait(state, now, retry_after, limits, uniform)
        # Begun before it opened. It may say how long to wait; else it tells nothing new.
        asked = max(state.probe_at or now, now + retry_after)
        return replace(state, last_failed_at=now, probe_at=asked if retry_after else state.probe_at)
    if _is_over(state, now, limits):
        state = State()
    state = _bounded(replace(state, failed=state.failed + 1, last_failed_at=now), limits)
    if retry_after or (state.failed >= limits.failures and state.failed >= state.succeeded):
        return _wait(replace(state, opened_at=now), now, retry_after, limits, uniform)
    return state


def after_success(state: State, *, count: int, token: int | None, limits: Limits) -> State:
    """`token`: of the probe that went well, if one did. Other successes of an open breaker began before it opened."""
    if state.is_open:
        if token is None or token != state.probe_token:
            return state
        # The level stays until the failure is forgotten: what closes and opens again at once waits longer and longer.
        return State(level=state.level, last_failed_at=state.last_failed_at)
    return _bounded(replace(state, succeeded=state.succeeded + count), limits) if state.is_troubled else state


def may_probe(state: State, now: datetime) -> bool:
    if state.probe_at is None or now < state.probe_at:
        return False
    return state.probe_until is None or now >= state.probe_until


def with_probe(state: State, *, now: datetime, token: int, limits: Limits) -> State:
    return replace(state, probe_token=token, probe_until=now + limits.lease)


def without_probe(state: State, *, token: int) -> State:
    """There was nothing to try it with: the next who has something may."""
    return replace(state, probe_token=None, probe_until=None) if state.probe_token == token else state


def _wait(
    state: State,
    now: datetime,
    retry_after: timedelta,
    limits: Limits,
    uniform: Callable[[float, float], float],
) -> State:
    wait = min(limits.first * 2 ** min(state.level, 30), limits.longest) * uniform(0.5, 1.0)
    return replace(
        state,
        last_failed_at=now,
        probe_at=now + max(wait, retry_after),
        probe_token=None,
        probe_until=None,
        level=state.level + 1,
    )


def _is_over(state: State, now: datetime, limits: Limits) -> bool:
    return state.last_failed_at is not None and now - state.last_failed_at > limits.memory


def _bounded(state: State, limits: Limits) -> State:
    if state.failed + state.succeeded <= REMEMBERED * limits.failures:
        return state
    return replace(state, failed=-(-state.failed // 2), succeeded=state.succeeded // 2)
