"""Each alarm's runbook, and the pages that show what an incident is about."""

from __future__ import annotations

from django.urls import reverse
from django.utils.http import urlencode

from jobs.alarms.judges import product_judge_of, product_judges
from jobs.alarms.rules import LETTER_ALARMS
from jobs.models import Incident

# A page each in docs/runbooks/, by the name of its file.
RUNBOOKS = {
    **dict.fromkeys(("job-overdue", "job-stuck", "job-slow", "job-failed"), "nightly-job-late"),
    **dict.fromkeys(("slot-unnoticed", "scheduler-silent", "watchman-silent"), "scheduler-dead"),
    **dict.fromkeys(LETTER_ALARMS, "dead-letters"),
    "provider-away": "provider-brownout",
    **dict.fromkeys(("queue-behind", "queue-late", "queue-growing"), "queue-behind"),
    **dict.fromkeys(("arrivals-stopped", "subscription-suspended"), "queue-behind"),
    "partition-hot": "hot-partition",
    "message-cycling": "poison-message",
    "type-unknown": "deploy",
    "type-unsubscribed": "new-subscription",
    **dict.fromkeys(("horizon-held", "dead-rows", "notify-queue-filling"), "xmin-horizon"),
    "connections-short": "postgres-failover",
}


def page_of(alarm: str) -> str:
    """The runbook's path in the repository."""
    return f"docs/runbooks/{runbook_of(alarm)}.md"


def runbook_address(alarm: str) -> str:
    """Where the running site shows it."""
    return reverse("admin:jobs_runbook", args=[runbook_of(alarm)])


def runbook_of(alarm: str) -> str:
    judge = product_judge_of(alarm)
    return judge.runbook if judge else RUNBOOKS[alarm]


def runbooks() -> set[str]:
    """All that the site shows."""
    return {*RUNBOOKS.values(), *(judge.runbook for judge in product_judges())}


def address_of(incident: Incident) -> list[str]:
    """The admin's page of what it is about, if there is one apart from the incident's own."""
    judge = product_judge_of(incident.alarm)
    if judge is not None:
        return [judge.page(incident.subject)] if judge.page else []
    if incident.alarm in LETTER_ALARMS:
        query = urlencode({"subscription": incident.subject, "decision": "open"})
        return [f"{reverse('admin:jobs_deadletter_letters')}?{query}"]
    return [reverse("admin:jobs_operations")]
