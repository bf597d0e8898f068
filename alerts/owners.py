"""Whose alerts may speak: those of people who have confirmed their address. Others' alerts wait; see waiting.py.

Used by matching, which skips the others, and by delivery, which looks again a moment before it sends.
"""

from django.db.models import Q

# A person's address is the row that is primary (allauth's EmailAddress); there is at most one, so a join adds no rows.
CONFIRMED = Q(user__emailaddress__primary=True, user__emailaddress__verified=True)
CONFIRMED_OWNER = Q(alert__user__emailaddress__primary=True, alert__user__emailaddress__verified=True)
