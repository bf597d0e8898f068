"""An incident's turn, posted: JSON, signed as Standard Webhooks (standardwebhooks.com) has it given a secret.

Guarantee: `webhook-id` is the turn's own on every try; over within settings.MONITOR_TIMEOUT; raises if it is not taken.
"""

from __future__ import annotations

import threading
import time

import urllib3
from django.conf import settings
from django.urls import reverse

from jobs.alarms.pages import page_of
from jobs.messages import dumps
from jobs.models import Notice
from jobs.standard_webhooks import Signed, read_secret, sign
from jobs.words import utc


class NotTakenError(Exception):
    """The other side did not answer in time, or not with yes."""


def post(notice: Notice) -> None:
    """Raises NotTakenError; the notice is then told again."""
    id_, body = f"incident-{notice.incident_id}-{notice.turn}", content(notice)
    answers: list[int | str] = []
    # In a thread that is left behind when it is late: a server that sends a byte a second meets every read's timeout.
    posting = threading.Thread(target=_request, args=(id_, body, answers), name="alarm-webhook", daemon=True)
    posting.start()
    posting.join(settings.MONITOR_TIMEOUT.total_seconds())
    match answers:
        case [int(status)] if 200 <= status < 300:
            return
        case [answer]:
            raise NotTakenError(f"answered {answer}")
    raise NotTakenError(f"no answer within {settings.MONITOR_TIMEOUT.total_seconds():g} s")


def content(notice: Notice) -> bytes:
    """The same bytes on every try, but for what the incident has come to meanwhile."""
    incident = notice.incident
    facts = {
        "type": f"incident.{notice.turn}",
        "timestamp": notice.at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "data": {
            "incident": incident.pk,
            "alarm": incident.alarm,
            "subject": incident.subject,
            "severity": incident.severity,
            "summary": incident.summary,
            "since": utc(incident.since),
            "acknowledged_by": incident.acknowledged_by,
            "url": settings.SITE_URL + reverse("admin:jobs_incident_change", args=[incident.pk]),
            "runbook": page_of(incident.alarm),
        },
    }
    return dumps(facts).encode()


def _request(id_: str, body: bytes, answers: list[int | str]) -> None:
    timestamp = str(int(time.time()))  # the receiver compares it with its own clock, so it is no database's
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Winecellar",
        "webhook-id": id_,
        "webhook-timestamp": timestamp,
    }
    if settings.ALARM_WEBHOOK_SECRET:
        secret = read_secret(settings.ALARM_WEBHOOK_SECRET)
        headers["webhook-signature"] = sign(secret, Signed(id_, timestamp, ""), body)
    try:
        response = urllib3.request(
            "POST",
            settings.ALARM_WEBHOOK_URL,
            body=body,
            headers=headers,
            timeout=settings.MONITOR_TIMEOUT.total_seconds(),
            retries=False,
            preload_content=False,
        )
        response.close()
    except urllib3.exceptions.HTTPError as error:
        answers.append(type(error).__name__)
    else:
        answers.append(response.status)
