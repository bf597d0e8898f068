"""What becomes of a slot: run, skipped, missed; and of a run that failed. Pure; imports no Django.

The scheduler notes each nominal slot once and asks here what to do about it. It writes the answer with the slot, so
that nobody has to guess afterwards why something ran, or did not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Overlap(StrEnum):
    """What becomes of a slot whose time comes while the job still runs."""

    SKIP = "skip"
    QUEUE = "queue"


@dataclass(frozen=True)
class CatchUp:
    """What becomes of missed slots: none of them runs, the latest one, or each of the last `most`.

    `latest` stands for all before it, so it does not run beside a newer slot that is on time.
    """

    kind: str
    most: int

    @classmethod
    def skip(cls) -> CatchUp:
        return cls("skip", 0)

    @classmethod
    def latest(cls) -> CatchUp:
        return cls("latest", 1)

    @classmethod
    def each(cls, most: int) -> CatchUp:
        return cls("each", most)

    def __str__(self) -> str:
        return f"each (at most {self.most})" if self.kind == "each" else self.kind


class Outcome(StrEnum):
    """Where a slot stands. The first two are under way, the others are endings."""

    WAITING = "waiting"
    RUNNING = "running"
    RAN = "ran"
    FAILED = "failed"
    CRASHED = "crashed"
    SKIPPED = "skipped"
    MISSED = "missed"
    PAUSED = "paused"


class Origin(StrEnum):
    """Why a slot was to run: its time came, it was caught up later, a person asked."""

    SLOT = "slot"
    CAUGHT_UP = "caught_up"
    BY_HAND = "by_hand"


@dataclass(frozen=True)
class Noted:
    """One slot, and what is to become of it."""

    slot: datetime
    outcome: Outcome
    origin: Origin = Origin.SLOT
    reason: str = ""


@dataclass(frozen=True)
class Standing:
    """The job when its slots are noted. `running`: the slot that runs now, if any."""

    paused: bool
    running: datetime | None


def note(
    slots: Iterable[datetime],
    *,
    newest: datetime,
    caught_up_from: datetime,
    now: datetime,
    late_after: timedelta,
    overlap: Overlap,
    catch_up: CatchUp,
    standing: Standing,
) -> list[Noted]:
    """Decide about slots whose time has come.

    `newest` is the newest of all that are due, on time unless it is later than `late_after`; everything before it is
    missed, for its successor's time has come too. `caught_up_from` is the first of them that the catch-up may run.
    """
    on_time = now - newest <= late_after
    decided = []
    for slot in slots:
        missed = slot < newest or not on_time
        if standing.paused:
            decided.append(Noted(slot, Outcome.PAUSED, reason="the job was paused"))
        elif missed and not (slot >= caught_up_from and catch_up.most and (catch_up.kind == "each" or slot == newest)):
            decided.append(
                Noted(slot, Outcome.MISSED, Origin.SLOT, _why_missed(slot, newest, catch_up, on_time=on_time))
            )
        elif standing.running is not None and overlap is Overlap.SKIP:
            decided.append(Noted(slot, Outcome.SKIPPED, reason=f"still running: {standing.running:%Y-%m-%d %H:%M} UTC"))
        else:
            decided.append(Noted(slot, Outcome.WAITING, Origin.CAUGHT_UP if missed else Origin.SLOT))
    return decided


def _why_missed(slot: datetime, newest: datetime, catch_up: CatchUp, *, on_time: bool) -> str:
    if catch_up.most == 0:
        return "no scheduler ran at its time; this job does not catch up"
    if catch_up.kind == "latest":
        return (
            f"no scheduler ran at its time; {newest:%Y-%m-%d %H:%M} UTC {'ran' if on_time else 'is caught up'} for it"
        )
    return f"no scheduler ran at its time; only the last {catch_up.most} are caught up"


def goes_again(
    *, attempt: int, attempts: int, next_slot: datetime, now: datetime, overlap: Overlap, catch_up: CatchUp
) -> bool:
    """Whether a slot whose attempt number `attempt` failed or crashed is tried again.

    When its successor's time has come that one stands for it, unless each slot counts: by queueing or by `each`.
    """
    if attempt >= attempts:
        return False
    return now < next_slot or overlap is Overlap.QUEUE or catch_up.kind == "each"


def superseded(*, overlap: Overlap, catch_up: CatchUp) -> bool:
    """Whether a slot that still waits when a later one is to run gives way to it."""
    return overlap is Overlap.SKIP and catch_up.kind != "each"
