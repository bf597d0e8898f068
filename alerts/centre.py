"""The notifications centre: all that somebody was told, by which ways, and what of it is unread.

Reads say how many queries they make; `mark_read` is the one write. Called by centre_views.py and the context processor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import reverse

from alerts import told
from alerts.channels.models import Channel, ChannelDelivery
from alerts.digest.models import Digest
from alerts.models import Notification

PAGE_SIZE = 20
MOST_COUNTED = 100  # “99+”: nobody reads a larger number, and counting it would cost more than the page
_CURSOR = re.compile(r"(?P<at>\d{4}-\d\d-[0-9T:.+]{10,28})_(?P<kind>alert|digest)_(?P<id>\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Way:
    """By what somebody was told, and how that stands, in words; `state` is for the chip's colour."""

    name: str
    says: str
    state: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that somebody was told."""

    at: datetime
    kind: str
    pk: int
    says: str
    url: str
    unread: bool
    ways: tuple[Way, ...]

    @property
    def cursor(self) -> str:
        return f"{self.at.isoformat()}_{self.kind}_{self.pk}"


@dataclass(frozen=True, slots=True)
class Page:
    entries: list[Entry]
    older: str | None  # the cursor behind which there is more


def told_to(*, user_id: int, before: str = "") -> Page:
    """What somebody was told, the newest first, from behind a cursor on: 4 queries. An odd cursor is the first page."""
    mails = Notification.objects.filter(alert__user_id=user_id).select_related("alert__wine")
    digests = Digest.objects.filter(user_id=user_id)
    if (place := _place(before)) is not None:
        mails, digests = _behind(mails, "alert", place), _behind(digests, "digest", place)
    mails = mails.prefetch_related("channel_deliveries__channel")
    found = [
        *(_of_alert(row) for row in mails.order_by("-created_at", "-id")[: PAGE_SIZE + 1]),
        *(_of_digest(row) for row in digests.order_by("-created_at", "-id")[: PAGE_SIZE + 1]),
    ]
    found.sort(key=lambda entry: (entry.at, entry.kind, entry.pk), reverse=True)
    shown = found[:PAGE_SIZE]
    return Page(shown, shown[-1].cursor if len(found) > PAGE_SIZE else None)


def _place(cursor: str) -> tuple[datetime, str, int] | None:
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        return None
    try:
        at = datetime.fromisoformat(parts["at"])
    except ValueError:
        return None
    return None if at.tzinfo is None else (at, parts["kind"], int(parts["id"]))


def _behind(rows: QuerySet[Any], kind: str, place: tuple[datetime, str, int]) -> QuerySet[Any]:
    """In the order of time, then kind, then id, from the newest."""
    at, other, pk = place
    if kind == other:
        return rows.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk))
    return rows.filter(created_at__lte=at) if kind < other else rows.filter(created_at__lt=at)


def _of_alert(row: Notification) -> Entry:
    posted = sorted(row.channel_deliveries.all(), key=lambda delivery: delivery.channel_id)
    mail = Way("Mail", row.get_state_display(), _CHIPS.get(row.state, ""))
    ways = (mail, *(Way(str(each.channel), _says(each), _CHIPS.get(each.state, "")) for each in posted))
    url = reverse("alert", args=[row.alert_id])
    return Entry(row.created_at, "alert", row.pk, told.headline(row), url, row.read_at is None, ways)


def _of_digest(row: Digest) -> Entry:
    mail = Way("Mail", row.get_state_display(), _CHIPS.get(row.state, ""))
    return Entry(
        row.created_at, "digest", row.pk, "Your week", reverse("digest", args=[row.pk]), row.read_at is None, (mail,)
    )


def _says(delivery: ChannelDelivery) -> str:
    """“on its way: answered 503” while it is tried again."""
    state = str(delivery.get_state_display())
    return f"{state}: {delivery.answer}" if delivery.answer and delivery.state != "taken" else state


_CHIPS = {"queued": "pending", "sent": "fired", "taken": "fired"}


def switched_off(*, user_id: int) -> list[Channel]:
    """Channels that were switched off for what their receivers did: 1 query."""
    off = Channel.objects.filter(user_id=user_id, off_at__isnull=False)
    return [channel for channel in off if not channel.switched_off_by_owner]


def unread(*, user_id: int) -> int:
    """How many entries are unread, up to MOST_COUNTED: 1 query."""
    mails = Notification.objects.filter(alert__user_id=user_id, read_at=None).order_by().values("pk")
    digests = Digest.objects.filter(user_id=user_id, read_at=None).order_by().values("pk")
    return mails[:MOST_COUNTED].union(digests[:MOST_COUNTED], all=True).count()


def mark_read(*, user_id: int, until: datetime, now: datetime) -> int:
    """Mark what was told until then; what came since, while the page was being read, stays unread."""
    with transaction.atomic():
        mails = Notification.objects.filter(alert__user_id=user_id, read_at=None, created_at__lte=until)
        digests = Digest.objects.filter(user_id=user_id, read_at=None, created_at__lte=until)
        return sum(_marked(rows, now) for rows in (mails, digests))


def _marked(rows: QuerySet[Any], now: datetime) -> int:
    locked: Iterable[int] = (
        rows.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk", flat=True)
    )
    return int(rows.model._default_manager.filter(pk__in=list(locked)).update(read_at=now))
