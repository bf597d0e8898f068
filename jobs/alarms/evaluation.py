"""One look at every alarm: read the facts, judge them, write the incidents, tell people. By the watchman and by a job.

Guarantee: a judge that fails hides no other judge's alarms, and its own incidents stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import Error

from jobs.alarms import facts, incidents, mail
from jobs.alarms.judges import Judge, product_judges
from jobs.alarms.rules import (
    AWAY_ALARMS,
    JOB_ALARMS,
    LETTER_ALARMS,
    PROCESS_ALARMS,
    Condition,
    judge_away,
    judge_job,
    judge_letters,
    judge_processes,
)
from jobs.schedule.declared import load_schedule

log = structlog.get_logger(__name__)


def _jobs(now: datetime) -> Iterable[Condition]:
    silent = {c.alarm for c in _processes(now)}
    for job in facts.jobs(load_schedule().values(), now):
        for condition in judge_job(job, now, facts.limits()):
            # Without a scheduler no job's slots are noticed: that is one incident, not one for each job.
            if condition.alarm != "slot-unnoticed" or "scheduler-silent" not in silent:
                yield condition


def _processes(now: datetime) -> Iterable[Condition]:
    return judge_processes(facts.beats(), now, facts.limits())


def _letters(now: datetime) -> Iterable[Condition]:
    return judge_letters(facts.letters(now), now, facts.limits())


def _away(now: datetime) -> Iterable[Condition]:
    return judge_away(facts.open_breakers(), now, facts.limits())


JUDGES = [
    Judge(JOB_ALARMS, _jobs),
    Judge(PROCESS_ALARMS, _processes),
    Judge(LETTER_ALARMS, _letters),
    Judge(AWAY_ALARMS, _away),
]


def evaluate(now: datetime) -> bool:
    """Look at everything at the database's time `now`; whether every judge could. Opens and closes incidents."""
    judged: list[str] = []
    conditions: list[Condition] = []
    judges = [*JUDGES, *product_judges()]
    for judge in judges:
        try:
            conditions += judge.look(now)
        except Error:
            raise  # without a database nothing can be judged; the loop's business
        except Exception:
            log.exception("judge.failed", alarms=judge.alarms)
            continue
        judged += judge.alarms
    silent = settings.PROCESS_SILENT_AFTER
    incidents.record(
        conditions,
        judged=judged,
        now=now,
        opens_after=dict.fromkeys(PROCESS_ALARMS, silent),
        closes_after=settings.INCIDENT_CLOSES_AFTER,
    )
    return len(judged) == sum(len(judge.alarms) for judge in judges)


def tell(now: datetime) -> int:
    """Mail the open incidents nobody was told about; how many. What cannot be sent is tried again a minute later."""
    if not settings.ALARM_MAIL_TO:
        return 0
    told = 0
    for incident in incidents.claim_untold(now):
        try:
            message: EmailMessage = mail.compose(incident)
            message.send()
        except Exception as error:
            log.exception("incident.not_told", incident=incident.pk, error=type(error).__name__)
            continue  # its minute runs out
        incidents.mark_told(incident)
        told += 1
    return told
