"""Where each alarm's paragraph for operators stands, and the page that shows what it is about."""

from __future__ import annotations

from django.urls import reverse
from django.utils.http import urlencode

from jobs.alarms.judges import product_judge_of
from jobs.alarms.rules import LETTER_ALARMS
from jobs.models import Incident

RUNBOOK, SCHEDULE = "docs/runbooks/dead-letters.md", "docs/schedule.md"


def page_of(alarm: str) -> str:
    if judge := product_judge_of(alarm):
        return judge.runbook
    return RUNBOOK if alarm in LETTER_ALARMS else SCHEDULE


def address_of(incident: Incident) -> list[str]:
    """The admin's page of what it is about, if there is one apart from the incident's own."""
    judge = product_judge_of(incident.alarm)
    if judge is not None:
        return [judge.page(incident.subject)] if judge.page else []
    if incident.alarm not in LETTER_ALARMS:
        return []
    query = urlencode({"subscription": incident.subject, "decision": "open"})
    return [f"{reverse('admin:jobs_deadletter_letters')}?{query}"]
