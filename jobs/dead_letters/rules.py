"""How a redrive goes on and when it stops by itself; how business days are counted. Pure; imports no Django."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

QUEUED, SENT = "queued", "sent"
FAILED = ("failed_again", "refused")  # a lap taken in vain, or spared one


@dataclass(frozen=True)
class Send:
    count: int


@dataclass(frozen=True)
class Wait:
    """For what has been sent."""


@dataclass(frozen=True)
class Stop:
    because: str


@dataclass(frozen=True)
class Done:
    """All of it has been sent, and all that was sent is settled."""


Move = Send | Wait | Stop | Done


def next_move(
    counts: Mapping[str, int], *, rate: int, stop_share: float, sample: int, stop_asked_by: str, may_send: bool
) -> Move:
    """What a redrive does next, by its letters' outcomes so far.

    The first `sample` go alone and are waited for. After that no more than two seconds' worth are under way, so that
    a redrive that fails again is stopped before much of it has failed. `may_send`: the rate allows the next portion.
    """
    queued, sent = counts.get(QUEUED, 0), counts.get(SENT, 0)
    failed = sum(counts.get(outcome, 0) for outcome in FAILED)
    settled = sum(counts.values()) - queued - sent
    if stop_asked_by and queued:
        return Stop("stopped by hand")
    enough = min(sample, settled + queued + sent)
    if queued and settled >= enough and failed > stop_share * settled:
        return Stop(f"{failed} of the first {settled} failed again, more than {stop_share:.0%}")
    if not queued:
        return Wait() if sent else Done()
    most = sample - settled - sent if settled < sample else 2 * rate - sent
    room = min(rate, most, queued)
    return Send(room) if may_send and room > 0 else Wait()


def business_days(since: datetime, until: datetime) -> float:
    """How many days of Monday to Friday lie between two times, in UTC; parts of a day count as parts."""
    since, until = since.astimezone(UTC), until.astimezone(UTC)
    total, at = timedelta(0), since
    while at < until:
        midnight = (at + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        if at.weekday() < 5:
            total += min(midnight, until) - at
        at = midnight
    return total / timedelta(days=1)
