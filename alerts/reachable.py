"""Who may get which mail: not those who want none, nor at an address that takes none. For querysets, as joins.

`prefix` leads from the queryset's model to the person: "alert__user" for notifications, "" for people themselves.
Every mail but those about accounts asks this a moment before it is sent; account mails are always sent.
"""

from __future__ import annotations

from django.db.models import F, Q


def alerts_wanted(prefix: str = "") -> Q:
    """The person has not called off the mails about alerts."""
    return Q(**{_at(prefix, "mail_wish__alerts_off_at__isnull"): True})


def digest_wanted(prefix: str = "") -> Q:
    """The person has not called off the weekly mail."""
    return Q(**{_at(prefix, "mail_wish__digest_off_at__isnull"): True})


def address_works(prefix: str = "") -> Q:
    """No mail to the person's present address came back for good, or the person says that it works again."""
    suppressed = {
        _at(prefix, "mail_suppression__lifted_at__isnull"): True,
        _at(prefix, "mail_suppression__address"): F(_at(prefix, "email")),
    }
    return ~Q(**suppressed)


def _at(prefix: str, path: str) -> str:
    return f"{prefix}__{path}" if prefix else path
