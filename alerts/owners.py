"""Whose alerts may speak: those of people who have confirmed their address. Others' alerts wait; see waiting.py.

Used by matching, which skips the others, and by delivery, which looks again a moment before it sends.
"""

from datetime import datetime

from django.db.models import Q

# A person's address is the row that is primary (allauth's EmailAddress); there is at most one, so a join adds no rows.
CONFIRMED = Q(user__emailaddress__primary=True, user__emailaddress__verified=True)
CONFIRMED_OWNER = Q(alert__user__emailaddress__primary=True, alert__user__emailaddress__verified=True)


def wanted(now: datetime) -> Q:
    """Which notifications are still wanted as they are about to be sent, whoever decided on them when."""
    confirmed = CONFIRMED_OWNER & Q(alert__user__is_active=True)
    there = Q(alert__deleted_at__isnull=True) & ~Q(alert__state="paused")
    awake = Q(alert__snoozed_until__isnull=True) | Q(alert__snoozed_until__lte=now)
    lasting = Q(alert__expires_at__isnull=True) | Q(alert__expires_at__gt=now)
    return confirmed & there & awake & lasting
