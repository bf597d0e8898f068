"""Whose alerts may speak: those of people who have confirmed their address. Others' alerts wait; see waiting.py.

Used by matching, which skips the others, and by delivery, which looks again a moment before it sends.
"""

from datetime import datetime

from django.db.models import Q


def confirmed(prefix: str = "") -> Q:
    """A person's address is the row that is primary (allauth's EmailAddress); at most one, so a join adds no rows.

    `prefix` leads from the queryset's model to the person.
    """
    path = f"{prefix}__emailaddress" if prefix else "emailaddress"
    return Q(**{f"{path}__primary": True, f"{path}__verified": True})


CONFIRMED = confirmed("user")
# The same for SQL of ours over `alert`. Not joined (OFFSET 0): that might read everybody's address.
CONFIRMED_SQL = """EXISTS (
    SELECT FROM account_emailaddress address
    WHERE address.user_id = alert.user_id AND address."primary" AND address.verified OFFSET 0)"""
CONFIRMED_OWNER = confirmed("alert__user")


def wanted(now: datetime) -> Q:
    """Which notifications are still wanted as they are about to be sent, whoever decided on them when."""
    confirmed = CONFIRMED_OWNER & Q(alert__user__is_active=True)
    there = Q(alert__deleted_at__isnull=True) & ~Q(alert__state="paused")
    awake = Q(alert__snoozed_until__isnull=True) | Q(alert__snoozed_until__lte=now)
    awake &= Q(alert__snoozed_until_rise=False)
    lasting = Q(alert__expires_at__isnull=True) | Q(alert__expires_at__gt=now)
    return confirmed & there & awake & lasting
