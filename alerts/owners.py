"""Whose alerts may speak: those of people who have confirmed their address. Others' alerts wait; see waiting.py.

Used by matching, which skips the others, and by delivery, which looks again a moment before it sends.
"""

from django.db.models import Q


def confirmed(prefix: str = "") -> Q:
    """A person's address is the row that is primary (allauth's EmailAddress); at most one, so a join adds no rows.

    `prefix` leads from the queryset's model to the person.
    """
    path = f"{prefix}__emailaddress" if prefix else "emailaddress"
    return Q(**{f"{path}__primary": True, f"{path}__verified": True})


CONFIRMED = confirmed("user")
CONFIRMED_OWNER = confirmed("alert__user")
