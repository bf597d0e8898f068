"""What an operator does to a scheduled job: pause, resume, run now, back-fill. Shared by command and admin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, date, datetime, time, timedelta

import structlog

from jobs.schedule import cron, store
from jobs.schedule.declared import Job
from jobs.schedule.perform import Ending, perform
from jobs.schedule.run import Run, Tell

log = structlog.get_logger(__name__)


class BusyError(Exception):
    """The job runs already; the message says which slot, and where."""


def pause(*, job: str) -> bool:
    """Let its slots pass, each with a row that says so. What runs goes on. Whether it was not paused before."""
    changed = store.set_paused(job, paused=True)
    log.info("job.paused", job=job)
    return changed


def resume(*, job: str) -> bool:
    """From its next slot on. What passed meanwhile is not caught up."""
    changed = store.set_paused(job, paused=False)
    log.info("job.resumed", job=job)
    return changed


def run_now(*, job: Job, by: str, now: datetime) -> datetime | None:
    """Ask the schedulers to run its latest slot, again if it ran; the slot, or None when it is under way already."""
    slot = cron.latest_slot(job.cron, now)
    asked = store.ask(job.name, [slot], by=by)
    log.info("job.asked_for", job=job.name, slot=slot.isoformat(), by=by)
    return slot if asked else None


def slots_asked_for(
    job: Job, only: str | None, first: str | None, last: str | None, *, now: datetime
) -> list[datetime]:
    """What a person means by one day or slot, by the first and the last, or by nothing: the latest slot.

    Raises ValueError in words.
    """
    if (only and (first or last)) or bool(first) != bool(last):
        raise ValueError("Give --for alone, or --from and --to together.")
    if only or first:
        return slots_of(job, _time(only or first or ""), _time(only or last or ""), now=now)
    return [cron.latest_slot(job.cron, now)]


def _time(text: str) -> date | datetime:
    if len(text) == len("2026-03-14"):
        return date.fromisoformat(text)
    value = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if value.tzinfo is None:
        raise ValueError(f"{text}: a time needs its zone, for example 2026-03-14T02:00Z")
    return value


def slots_of(job: Job, first: date | datetime, last: date | datetime, *, now: datetime) -> list[datetime]:
    """The job's slots from `first` to `last`; a date means all of its slots. Raises ValueError in words."""
    begin = first if isinstance(first, datetime) else datetime.combine(first, time.min, UTC)
    end = last if isinstance(last, datetime) else datetime.combine(last + timedelta(days=1), time.min, UTC)
    if not isinstance(last, datetime):
        end -= timedelta(microseconds=1)
    if end < begin:
        raise ValueError(f"{last} is before {first}")
    slots = list(cron.slots_between(job.cron, begin, end))
    if not slots:
        after = cron.next_slot(job.cron, begin)
        raise ValueError(f"{job.name} ({job.cron}) has no slot there; the next one is {after:%Y-%m-%dT%H:%MZ}")
    if slots[-1] > now:
        raise ValueError(f"{slots[-1]:%Y-%m-%dT%H:%MZ} has not come yet; it is {now:%Y-%m-%dT%H:%MZ}")
    return slots


def run_by_hand(
    job: Job,
    slots: Sequence[datetime],
    *,
    owner: str,
    by: str,
    tell: Tell | None = None,
    stopped_by: Callable[[Run], AbstractContextManager[None]] = lambda run: nullcontext(),
) -> Iterator[tuple[datetime, Ending]]:
    """Run these slots in this process, one after the other, until one is stopped; yields how each ended.

    Through the same lock, fence and rows as the scheduler's; only there is no second attempt. Raises BusyError.
    """
    store.insert_missing_jobs([job])
    for slot in slots:
        claimed = store.begin_asked(job, slot, owner=owner, by=by)
        if claimed is None:
            raise BusyError(_busy(job))
        run = Run(job, claimed, tell=tell)
        with stopped_by(run):
            ending = perform(job, run, last=True)
        yield slot, ending
        if run.stopping:
            return


def _busy(job: Job) -> str:
    held = store.holder(job.name)
    if held is None:
        return f"{job.name} was just being run. Try again."
    return f"{job.name} runs already: {held[1]:%Y-%m-%d %H:%M} UTC, by {held[0]}. Wait until it has ended."
