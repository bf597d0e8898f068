"""When something is wrong, and when its incident opens and closes. Pure; imports no Django.

A judge turns facts into conditions: what is true now and should not be. `step` turns a condition's coming and going
into an incident's life, with hysteresis: it must hold for `opens_after`, and be over for `closes_after`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.dead_letters.rules import business_days
from jobs.words import span, utc


class Severity(StrEnum):
    WARN = "warn"
    PAGE = "page"


@dataclass(frozen=True)
class Condition:
    """Something that is true now and should not be. One incident per (alarm, subject) at a time."""

    alarm: str
    subject: str
    severity: Severity
    summary: str


@dataclass(frozen=True)
class Limits:
    """Every threshold of the judges, from winecellar/settings.py."""

    late_after: timedelta
    grace: timedelta
    slow_factor: float
    slow_floor: timedelta
    silent_after: timedelta
    letters_warn_after: timedelta
    letters_page_after: timedelta
    letters_kept: timedelta
    letters_warn_expiry: timedelta
    letters_decide_within: float  # business days


# --- Jobs -------------------------------------------------------------------------------------------------------

JOB_ALARMS = ("job-overdue", "job-stuck", "job-slow", "job-failed", "slot-unnoticed")
SAMPLES = 5  # a usual time needs so many runs


@dataclass(frozen=True)
class RunFacts:
    scheduled_for: datetime
    outcome: str
    started_at: datetime
    ended_at: datetime | None
    reason: str = ""
    lock_expires_at: datetime | None = None  # of a running one


@dataclass(frozen=True)
class JobFacts:
    """`ran_at`: when a run last completed. `last`: the latest begun run that has ended. `usual`: times of the last
    runs, `last` left out. `unnoticed`: a slot long past that no scheduler has noted."""

    name: str
    heartbeat: timedelta
    time_limit: timedelta
    first_seen_at: datetime
    paused_at: datetime | None
    ran_at: datetime | None
    running: RunFacts | None
    last: RunFacts | None
    usual: timedelta | None
    samples: int
    unnoticed: datetime | None


def judge_job(job: JobFacts, now: datetime, limits: Limits) -> Iterator[Condition]:
    known_good = job.ran_at or job.first_seen_at
    if now - known_good > job.heartbeat:
        last = f"last completed {utc(job.ran_at)}" if job.ran_at else f"never completed since {utc(job.first_seen_at)}"
        paused = f"; paused since {utc(job.paused_at)}" if job.paused_at else ""
        summary = f"Not completed for {span(now - known_good)}, limit {span(job.heartbeat)}; {last}{paused}."
        yield Condition("job-overdue", job.name, Severity.PAGE, summary)
    if job.running and (why := _stuck(job, job.running, now, limits)):
        yield Condition(
            "job-stuck", job.name, Severity.PAGE, f"Started {utc(job.running.started_at)}, not ended: {why}."
        )
    if slow := _slow(job, now, limits):
        yield Condition("job-slow", job.name, Severity.WARN, slow)
    if job.last and job.last.outcome in {"failed", "crashed"}:
        summary = f"The run of {utc(job.last.scheduled_for)} {job.last.outcome}: {job.last.reason}"
        yield Condition("job-failed", job.name, Severity.WARN, summary)
    if job.unnoticed:
        summary = f"No scheduler has noticed the slot of {utc(job.unnoticed)}."
        yield Condition("slot-unnoticed", job.name, Severity.PAGE, summary)


def _stuck(job: JobFacts, running: RunFacts, now: datetime, limits: Limits) -> str | None:
    if running.lock_expires_at and now - running.lock_expires_at > limits.grace:
        return (
            f"no sign of life since its lock ran out at {utc(running.lock_expires_at)}, and no scheduler has found it"
        )
    if now - running.started_at > job.time_limit + 3 * limits.grace:
        return f"its time limit is {span(job.time_limit)}"
    return None


def _slow(job: JobFacts, now: datetime, limits: Limits) -> str | None:
    if job.usual is None or job.samples < SAMPLES:
        return None
    limit = max(job.usual * limits.slow_factor, limits.slow_floor)
    if job.running and now - job.running.started_at > limit:
        took = span(now - job.running.started_at)
        return f"The run of {utc(job.running.scheduled_for)} runs for {took}; usual: {span(job.usual)}."
    if job.last and job.last.outcome == "ran" and job.last.ended_at and job.last.ended_at - job.last.started_at > limit:
        took = span(job.last.ended_at - job.last.started_at)
        return f"The run of {utc(job.last.scheduled_for)} took {took}; usual: {span(job.usual)}."
    return None


# --- Processes --------------------------------------------------------------------------------------------------

PROCESS_ALARMS = ("scheduler-silent", "watchman-silent")


def judge_processes(beats: dict[str, datetime], now: datetime, limits: Limits) -> Iterator[Condition]:
    """`beats`: the latest sign of life of each kind. A restart's silence opens nothing yet (`opens_after`)."""
    for kind in ("scheduler", "watchman"):
        beat = beats.get(kind)
        if beat is None:
            yield Condition(f"{kind}-silent", kind, Severity.PAGE, f"No {kind} runs.")
        elif now - beat > limits.silent_after / 3:
            yield Condition(
                f"{kind}-silent", kind, Severity.PAGE, f"No {kind} has shown a sign of life since {utc(beat)}."
            )


# --- Dead letters -----------------------------------------------------------------------------------------------

LETTER_ALARMS = ("dead-letters-waiting", "dead-letters-undecided", "dead-letters-overdue", "dead-letters-expiring")
COUNTED = 1_000  # more are said to be more


@dataclass(frozen=True)
class LetterFacts:
    """One subscription's dead letters that nobody has decided about. What is quarantined is not counted until its date.

    `oldest`: since when the first of those counted waits. `first_to_go`: the oldest of all, quarantined or not.
    """

    subscription: str
    count: int
    oldest: datetime | None
    first_to_go: datetime


def judge_letters(letters: Iterable[LetterFacts], now: datetime, limits: Limits) -> Iterator[Condition]:
    for facts in letters:
        if facts.oldest is not None:
            yield from _judge_waiting(facts, facts.oldest, now, limits)
        if now - facts.first_to_go > limits.letters_kept - limits.letters_warn_expiry:
            gone = utc(facts.first_to_go + limits.letters_kept)
            summary = f"The oldest dead letter that nobody has decided about goes {gone}, for good."
            yield Condition("dead-letters-expiring", facts.subscription, Severity.WARN, summary)


def _judge_waiting(facts: LetterFacts, oldest: datetime, now: datetime, limits: Limits) -> Iterator[Condition]:
    age = now - oldest
    count = f"more than {COUNTED:,}" if facts.count > COUNTED else str(facts.count)
    waiting = f"{count} dead letter{'s' if facts.count != 1 else ''}, the oldest waiting for {span(age)}"
    if age >= limits.letters_warn_after:
        yield Condition("dead-letters-waiting", facts.subscription, Severity.WARN, f"{waiting}.")
    if age > limits.letters_page_after:
        yield Condition("dead-letters-undecided", facts.subscription, Severity.PAGE, f"{waiting}; nobody has decided.")
    if business_days(oldest, now) > limits.letters_decide_within:
        summary = f"{waiting}; nobody has decided within {limits.letters_decide_within:g} business days."
        yield Condition("dead-letters-overdue", facts.subscription, Severity.PAGE, summary)


# --- An incident's life -----------------------------------------------------------------------------------------


class Step(StrEnum):
    SUSPECT = "suspect"  # a new incident that is not open yet
    OPEN = "open"
    KEEP = "keep"
    FORGET = "forget"  # it was suspected, and over before it opened
    WAIT = "wait"  # it is over, but not for long enough
    CLOSE = "close"


@dataclass(frozen=True)
class Known:
    """An incident that is suspected or open."""

    since: datetime
    last_true_at: datetime
    opened: bool


def step(known: Known | None, *, holds: bool, now: datetime, opens_after: timedelta, closes_after: timedelta) -> Step:
    """What becomes of an incident (None: there is none), now that its condition holds or does not."""
    if holds:
        if known is not None and known.opened:
            return Step.KEEP
        since = now if known is None else known.since
        return Step.OPEN if now - since >= opens_after else Step.SUSPECT
    assert known is not None, "nothing to end"
    if not known.opened:
        return Step.FORGET
    return Step.CLOSE if now - known.last_true_at >= closes_after else Step.WAIT
