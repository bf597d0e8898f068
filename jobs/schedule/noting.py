"""Notes the slots whose time has come: one row each, with what is to become of it. Called by the scheduler.

Guarantee: each nominal slot since the job was first seen gets exactly one row, from however many schedulers; the clock
is the one that the caller read from the database, and a clock set back notes nothing twice.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

import structlog
from django.conf import settings
from django.db import transaction

from jobs.schedule import cron, rules, store
from jobs.schedule.declared import Job
from jobs.schedule.rules import Noted, Outcome

log = structlog.get_logger(__name__)
MOST_AT_ONCE = 5_000  # a month of minutes is noted in nine transactions, not in one


def note_due(job: Job, *, now: datetime) -> list[Noted]:
    """Note up to MOST_AT_ONCE of the job's slots up to `now`; returns them, none when another scheduler is at it."""
    with transaction.atomic():
        noting = store.lock_for_noting(job.name)
        if noting is None:
            return []
        newest = cron.latest_slot(noting.cron, now)
        after = noting.noted_until + timedelta(microseconds=1)
        slots = list(islice(cron.slots_between(noting.cron, after, newest), MOST_AT_ONCE))
        if not slots:
            return []
        on_time = now - newest <= settings.SCHEDULE_LATE_AFTER
        noted = rules.note(
            slots,
            newest=newest,
            caught_up_from=cron.latest_slot(noting.cron, newest, back=job.catch_up.most - (0 if on_time else 1))
            if job.catch_up.most
            else now,
            now=now,
            late_after=settings.SCHEDULE_LATE_AFTER,
            overlap=job.overlap,
            catch_up=job.catch_up,
            standing=rules.Standing(paused=noting.paused, running=noting.running),
        )
        store.write_noted(job.name, noted, until=slots[-1])
        to_run = [n.slot for n in noted if n.outcome is Outcome.WAITING]
        if to_run and rules.superseded(overlap=job.overlap, catch_up=job.catch_up):
            store.supersede_waiting(job.name, before=to_run[-1])
    for n in noted[-20:]:
        log.info("slot.noted", job=job.name, slot=n.slot.isoformat(), outcome=n.outcome.value, why=n.reason or n.origin)
    return noted
