"""What people are told of an incident: written with its turn, told after the commit, once each way.

Guarantee: a turn (opened, acknowledged, closed) makes one notice each way, by a unique key. It is told by one process
at a time, again a minute later if that failed; a crash after the other side's yes repeats it under the same id.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from jobs.alarms import mail, webhook
from jobs.database import in_transaction
from jobs.models import Incident, Notice

log = structlog.get_logger(__name__)
TELL_SECONDS = 60  # how long one process may take to tell before another tries
Turn, Way = Notice.Turn, Notice.Way
# By mail: what wants somebody, and that it is over. Who acknowledges it knows.
BY_MAIL = {Turn.OPENED, Turn.CLOSED}


def write(incident: Incident, turn: Notice.Turn) -> None:
    """In the transaction of the turn. Who is told is settled now: an address named later hears of later turns."""
    ways = [Way.MAIL] if settings.ALARM_MAIL_TO and turn in BY_MAIL else []
    if settings.ALARM_WEBHOOK_URL:
        ways.append(Way.WEBHOOK)
    Notice.objects.bulk_create(
        [Notice(incident=incident, turn=turn, way=way, at=Now()) for way in ways], ignore_conflicts=True
    )


def tell(now: datetime) -> int:
    """Tell what nobody was told yet; how many. What cannot be told is tried again a minute later."""
    assert not in_transaction(), "no call to the outside while a transaction is open"
    told = 0
    for notice in _claim(now):
        try:
            if notice.way == Way.MAIL:
                mail.compose(notice.incident, notice.turn).send()
            else:
                webhook.post(notice)
        except Exception as error:
            log.exception("incident.not_told", incident=notice.incident_id, way=notice.way, error=type(error).__name__)
            continue  # its minute runs out
        Notice.objects.filter(pk=notice.pk).update(told_at=Now(), telling_until=None)
        Incident.objects.filter(pk=notice.incident_id, told_at=None).update(told_at=Now())
        told += 1
    return told


def _claim(now: datetime) -> list[Notice]:
    """What is to be told, ours to tell for a minute; an incident's turns in their order."""
    free = Q(telling_until=None) | Q(telling_until__lt=now)
    with transaction.atomic():
        rows = Notice.objects.select_for_update(skip_locked=True, of=("self",)).select_related("incident")
        notices = list(rows.filter(free, told_at=None).order_by("id")[:100])
        Notice.objects.filter(pk__in=[n.pk for n in notices]).update(
            telling_until=now + timedelta(seconds=TELL_SECONDS)
        )
    return notices
