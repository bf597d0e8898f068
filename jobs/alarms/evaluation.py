"""One look at every alarm: read the facts, judge them, write the incidents. By the watchman and by a job.

Guarantee: a judge that fails hides no other judge's alarms, and its own incidents stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import structlog
from django.conf import settings
from django.db import Error

from jobs.alarms import facts, incidents
from jobs.alarms.judges import Judge, product_judges
from jobs.alarms.queue_rules import (
    QUEUE_ALARMS,
    SERVER_ALARMS,
    TREND_ALARMS,
    judge_arrivals,
    judge_queue,
    judge_server,
    judge_unsubscribed,
)
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
from jobs.gauges import server, store
from jobs.gauges.reading import Reading, read
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


def _queue(now: datetime) -> Iterable[Condition]:
    return of_queue(read(now))


def of_queue(reading: Reading) -> Iterable[Condition]:
    """What the gauges say of the queue. Arrivals are judged only while somebody counts them."""
    limits, now = facts.queue_limits(), reading.now
    lives = any(process.kind == "worker" for process in reading.processes)
    yield from judge_queue(reading.subscriptions, now, limits, worker_lives=lives)
    if reading.is_sampled:
        yield from judge_arrivals({s.name: s.pause for s in reading.subscriptions}, now, limits, slot=store.SLOT)
    yield from judge_unsubscribed(reading.unsubscribed)


def _server(now: datetime) -> Iterable[Condition]:
    return judge_server(facts.server(server.look()), facts.queue_limits())


JUDGES = [
    Judge(JOB_ALARMS, _jobs),
    Judge(PROCESS_ALARMS, _processes),
    Judge(LETTER_ALARMS, _letters),
    Judge(AWAY_ALARMS, _away),
    Judge(QUEUE_ALARMS, _queue),
    Judge(SERVER_ALARMS, _server),
]


def judges() -> list[Judge]:
    """Ours, and the product's."""
    return [*JUDGES, *product_judges()]


def look(now: datetime) -> tuple[list[Condition], list[str]]:
    """What is true at the database's time `now` and should not be, and the alarms whose judge could say."""
    judged: list[str] = []
    conditions: list[Condition] = []
    for judge in judges():
        try:
            found = list(judge.look(now))
        except Error:
            raise  # without a database nothing can be judged; the loop's business
        except Exception:
            log.exception("judge.failed", alarms=judge.alarms)
            continue
        conditions += found
        judged += judge.alarms
    return conditions, judged


def evaluate(now: datetime) -> bool:
    """Look at everything at the database's time `now`; whether every judge could. Opens and closes incidents."""
    conditions, judged = look(now)
    incidents.record(
        conditions,
        judged=judged,
        now=now,
        opens_after={
            **dict.fromkeys(PROCESS_ALARMS, settings.PROCESS_SILENT_AFTER),
            **dict.fromkeys(TREND_ALARMS, settings.ALARM_OPENS_AFTER),
        },
        closes_after=settings.INCIDENT_CLOSES_AFTER,
    )
    return len(judged) == sum(len(judge.alarms) for judge in judges())
