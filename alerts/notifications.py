"""The notification-delivery subscription: the mails that matching decided on. jobs/mail/transport.py hands them over.

Guarantee: a mail is sent only if it is still wanted a moment before; its Message-ID is the same on every try, so that a
provider or mailbox that knows it shows one. The window that remains: the server took the mail and we died before
our commit. It is as long as one settlement (milliseconds) and repeats at most the mails in flight at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.core.mail import EmailMultiAlternatives
from django.utils import timezone

from alerts import owners, reachable, suppressions
from alerts.mail import compose
from alerts.models import Notification, Suppression
from jobs.mail.transport import REFUSED, SENT
from jobs.messages import Message

OF_RESULT = {
    SENT: Notification.State.SENT,
    REFUSED: Notification.State.REFUSED,
    None: Notification.State.UNWANTED,
}


def prepare(messages: Sequence[Message]) -> list[EmailMultiAlternatives | None]:
    """The mail for each command; None where it is no longer wanted: alert gone, paused, snoozed or over, person gone,
    sent already. Nor is it wanted at an address that is not confirmed or takes no mail, nor by whoever called off
    these mails.
    """
    ids = [message.number("notification_id") for message in messages]
    queued = {
        notification.pk: notification
        for notification in Notification.objects.filter(
            owners.wanted(timezone.now()),
            reachable.alerts_wanted("alert__user"),
            reachable.address_works("alert__user"),
            pk__in=ids,
            state=Notification.State.QUEUED,
        ).select_related("alert__wine", "alert__user")
    }
    return [compose(queued[pk]) if pk in queued else None for pk in ids]


def record(pairs: Sequence[tuple[Message, str | None]]) -> None:
    """Settle the notifications: sent, refused, or not wanted any more."""
    now = timezone.now()
    for result, state in OF_RESULT.items():
        ids = [message.number("notification_id") for message, became in pairs if became == result]
        if not ids:
            continue
        queued = Notification.objects.filter(pk__in=ids, state=Notification.State.QUEUED)
        if result is REFUSED:
            for address in set(queued.values_list("alert__user__email", flat=True)):
                suppressions.suppress(address=address, why=Suppression.Why.BOUNCED, at=now)
        queued.update(state=state, settled_at=now)


def check(message: Message) -> None:
    """Raises PermanentError for a command that names nothing."""
    message.number("notification_id")
