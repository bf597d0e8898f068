"""The mail about an incident: what is true, since when, where to look, what to do."""

from __future__ import annotations

from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse

from jobs.alarms.pages import address_of, page_of
from jobs.models import Incident
from jobs.words import utc


def compose(incident: Incident) -> EmailMessage:
    """The Message-ID is the incident's: whoever gets a second try sees one mail."""
    domain = parseaddr(settings.MAIL_FROM)[1].rpartition("@")[2] or "localhost"
    address = settings.SITE_URL + reverse("admin:jobs_incident_change", args=[incident.pk])
    where = "".join(f"Where to look: {settings.SITE_URL}{path}\n" for path in address_of(incident))
    return EmailMessage(
        subject=" ".join(
            f"{incident.get_severity_display().capitalize()}: {incident.alarm}, {incident.subject}".split()
        ),
        body=f"{incident.summary}\n\nSince {utc(incident.since)}. Acknowledge it here, and see whether it is over:\n"
        f"{address}\n\n{where}"
        f"What to do: {page_of(incident.alarm)}, “{incident.alarm}”.\n",
        from_email=settings.MAIL_FROM,
        to=list(settings.ALARM_MAIL_TO),
        headers={"Message-ID": f"<incident-{incident.pk}@{domain}>", "Auto-Submitted": "auto-generated"},
    )
