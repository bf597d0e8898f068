"""Incidents written: opened, kept, acknowledged, closed. Called by the evaluation, the admin and the command.

Guarantee: one evaluation at a time, whoever asks for it, and at most one open incident per alarm and subject. Each turn
of an incident commits with the notices about it, which notices.py then tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import structlog
from django.db import connection, transaction
from django.db.models.functions import Now

from jobs.alarms import notices
from jobs.alarms.rules import Condition, Known, Severity, Step, step
from jobs.models import Incident, Notice

log = structlog.get_logger(__name__)
EVALUATION_LOCK = 0x77696E65  # any number, so that it is ours


def record(
    conditions: Iterable[Condition],
    *,
    judged: Iterable[str],
    now: datetime,
    opens_after: Mapping[str, timedelta],
    closes_after: timedelta,
) -> list[Incident] | None:
    """Bring the incidents of the `judged` alarms up to date; those that opened or closed, None if another is at it."""
    with transaction.atomic():
        if not _alone():
            return None
        found = {(c.alarm, c.subject): c for c in conditions}
        known = {(i.alarm, i.subject): i for i in Incident.objects.filter(closed_at=None, alarm__in=list(judged))}
        changed = []
        for key in sorted(found.keys() | known.keys()):
            condition, incident = found.get(key), known.get(key)
            what = step(
                _known(incident),
                holds=condition is not None,
                now=now,
                opens_after=opens_after.get(key[0], timedelta(0)),
                closes_after=closes_after,
            )
            incident = _seen(incident, condition, now) if condition else incident
            assert incident is not None
            if _write(incident, what, now):
                changed.append(incident)
    for incident in changed:
        if incident.closed_at:
            log.info("incident.closed", alarm=incident.alarm, subject=incident.subject)
        else:
            report = log.error if incident.severity == Severity.PAGE else log.warning
            report("incident.opened", alarm=incident.alarm, subject=incident.subject, summary=incident.summary)
    return changed


def _known(incident: Incident | None) -> Known | None:
    if incident is None:
        return None
    return Known(incident.since, incident.last_true_at, opened=incident.opened_at is not None)


def _alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [EVALUATION_LOCK])
        return bool(cursor.fetchone()[0])


def _seen(incident: Incident | None, condition: Condition, now: datetime) -> Incident:
    if incident is None:
        return Incident.objects.create(
            alarm=condition.alarm,
            subject=condition.subject,
            severity=condition.severity,
            summary=condition.summary,
            since=now,
            last_true_at=now,
        )
    incident.summary, incident.last_true_at = condition.summary, now
    incident.save(update_fields=["summary", "last_true_at"])
    return incident


def _write(incident: Incident, what: Step, now: datetime) -> bool:
    """Whether it opened or closed."""
    match what:
        case Step.OPEN:
            incident.opened_at = now
            incident.save(update_fields=["opened_at"])
            notices.write(incident, Notice.Turn.OPENED)
            return True
        case Step.CLOSE:
            incident.closed_at = now
            incident.save(update_fields=["closed_at"])
            notices.write(incident, Notice.Turn.CLOSED)
            return True
        case Step.FORGET:
            incident.delete()
    return False


def acknowledge(*, incident_id: int, by: str) -> bool:
    """Somebody has seen it; whether nobody had. A closed one needs no acknowledging."""
    with transaction.atomic():
        open_ones = Incident.objects.filter(acknowledged_at=None, opened_at__isnull=False, closed_at=None)
        if not open_ones.filter(pk=incident_id).update(acknowledged_at=Now(), acknowledged_by=by):
            return False
        notices.write(Incident.objects.get(pk=incident_id), Notice.Turn.ACKNOWLEDGED)
    return True


def purge(older_than: datetime) -> int:
    """Delete incidents closed before this, and what was told of them; how many went."""
    _, deleted = Incident.objects.filter(closed_at__lt=older_than).delete()
    return deleted.get(Incident._meta.label, 0)
