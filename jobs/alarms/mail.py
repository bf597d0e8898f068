"""The mail about an incident: what is true, since when, where to look, what to do."""

from __future__ import annotations

from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse

from jobs.alarms.pages import address_of, page_of
from jobs.models import Incident, Notice
from jobs.words import utc


def compose(incident: Incident, turn: str = Notice.Turn.OPENED) -> EmailMessage:
    """The Message-ID is the incident's and its turn's: whoever gets a second try sees one mail."""
    domain = parseaddr(settings.MAIL_FROM)[1].rpartition("@")[2] or "localhost"
    address = settings.SITE_URL + reverse("admin:jobs_incident_change", args=[incident.pk])
    where = "".join(f"Where to look: {settings.SITE_URL}{path}\n" for path in address_of(incident))
    subject = f"{incident.alarm}, {incident.subject}"
    if turn == Notice.Turn.CLOSED:
        assert incident.closed_at is not None
        subject = f"Over: {subject}"
        body = f"It is over since {utc(incident.last_true_at)}, and was, last: {incident.summary}\n\n{address}\n"
    else:
        subject = f"{incident.get_severity_display().capitalize()}: {subject}"
        body = (
            f"{incident.summary}\n\nSince {utc(incident.since)}. Acknowledge it here, and see whether it is over:\n"
            f"{address}\n\n{where}What to do: {page_of(incident.alarm)}, “{incident.alarm}”.\n"
        )
    which = "" if turn == Notice.Turn.OPENED else f"-{turn}"
    return EmailMessage(
        subject=" ".join(subject.split()),
        body=body,
        from_email=settings.MAIL_FROM,
        to=list(settings.ALARM_MAIL_TO),
        headers={"Message-ID": f"<incident-{incident.pk}{which}@{domain}>", "Auto-Submitted": "auto-generated"},
    )
