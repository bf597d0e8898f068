"""The notification-delivery subscription: the mails that matching decided on. jobs/smtp.py hands them over.

Guarantee: a mail is sent only if it is still wanted a moment before; its Message-ID is the same on every try, so that a
provider or mailbox that knows it shows one. The window that remains: the server took the mail and we died before
our commit. It is as long as one settlement (milliseconds) and repeats at most the mails in flight at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.core.mail import EmailMultiAlternatives
from django.utils import timezone

from alerts import owners
from alerts.mail import compose
from alerts.models import Notification
from jobs.errors import PermanentError
from jobs.messages import Message


def prepare(messages: Sequence[Message]) -> list[EmailMultiAlternatives | None]:
    """The mail for each command; None where it is no longer wanted: alert gone, paused, snoozed or over, person gone,
    sent already. Nor is it wanted at an address that is not confirmed.
    """
    ids = [_notification_id(message) for message in messages]
    queued = {
        notification.pk: notification
        for notification in Notification.objects.filter(
            owners.wanted(timezone.now()), pk__in=ids, state=Notification.State.QUEUED
        ).select_related("alert__wine", "alert__user")
    }
    return [compose(queued[pk]) if pk in queued else None for pk in ids]


def record(pairs: Sequence[tuple[Message, bool | None]]) -> None:
    """Settle the notifications: sent, or not wanted any more."""
    now = timezone.now()
    for sent, state in ((True, Notification.State.SENT), (None, Notification.State.UNWANTED)):
        ids = [_notification_id(message) for message, result in pairs if result is sent]
        if ids:
            queued = Notification.objects.filter(pk__in=ids, state=Notification.State.QUEUED)
            queued.update(state=state, settled_at=now)


def check(message: Message) -> None:
    """Raises PermanentError for a command that names nothing."""
    _notification_id(message)


def _notification_id(message: Message) -> int:
    value = message.body.get("notification_id")
    if not isinstance(value, int):
        raise PermanentError("notification_id required")
    return value
