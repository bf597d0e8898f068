"""Where each alarm's paragraph for operators stands, and the page that shows what it is about."""

from __future__ import annotations

from django.urls import reverse
from django.utils.http import urlencode

from jobs.alarms.rules import LETTER_ALARMS
from jobs.models import Incident

RUNBOOK, SCHEDULE = "docs/runbooks/dead-letters.md", "docs/schedule.md"


def page_of(alarm: str) -> str:
    return RUNBOOK if alarm in LETTER_ALARMS else SCHEDULE


def address_of(incident: Incident) -> list[str]:
    """The admin's page of what it is about, if there is one apart from the incident's own."""
    if incident.alarm not in LETTER_ALARMS:
        return []
    query = urlencode({"subscription": incident.subject, "decision": "open"})
    return [f"{reverse('admin:jobs_deadletter_letters')}?{query}"]
