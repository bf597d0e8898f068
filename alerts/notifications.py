"""The notification-delivery subscription: sends the mails that matching decided on.

Guarantee: a mail is sent only if it is still wanted a moment before; its Message-ID is the same on every try, so that a
provider or mailbox that knows it shows one. The window that remains: the server took the mail and we died before
our commit. It is as long as one settlement (milliseconds) and repeats at most the mails in flight at that moment.
"""

from __future__ import annotations

import smtplib
from collections.abc import Sequence

from django.core.mail import EmailMultiAlternatives, get_connection
from django.utils import timezone

from alerts.mail import compose
from alerts.models import Alert, Notification
from jobs.errors import PermanentError, TransientError
from jobs.messages import Message


def prepare(messages: Sequence[Message]) -> list[EmailMultiAlternatives | None]:
    """The mail for each command; None where it is no longer wanted: alert gone or paused, person gone, sent already."""
    ids = [_notification_id(message) for message in messages]
    queued = {
        notification.pk: notification
        for notification in Notification.objects.filter(
            pk__in=ids, state=Notification.State.QUEUED, alert__user__is_active=True
        )
        .exclude(alert__state=Alert.State.PAUSED)
        .select_related("alert__wine", "alert__user")
    }
    return [compose(queued[pk]) if pk in queued else None for pk in ids]


def perform(mail: EmailMultiAlternatives) -> bool:
    """Hand one mail to the mail server. Raises TransientError or PermanentError by what the server answered."""
    try:
        with get_connection(fail_silently=False) as connection:
            connection.send_messages([mail])
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise _by_code(max(codes, default=0), "recipient refused") from error
    except smtplib.SMTPResponseException as error:
        raise _by_code(error.smtp_code, "mail server") from error
    except (smtplib.SMTPException, OSError) as error:
        raise TransientError(f"mail server: {type(error).__name__}") from error
    return True


def record(pairs: Sequence[tuple[Message, bool | None]]) -> None:
    """Settle the notifications: sent, or not wanted any more."""
    now = timezone.now()
    for sent, state in ((True, Notification.State.SENT), (None, Notification.State.UNWANTED)):
        ids = [_notification_id(message) for message, result in pairs if result is sent]
        if ids:
            queued = Notification.objects.filter(pk__in=ids, state=Notification.State.QUEUED)
            queued.update(state=state, settled_at=now)


def _by_code(code: int, what: str) -> Exception:
    """SMTP's own classes (RFC 5321, 4.2.1): 4yz may succeed later, 5yz will not. No addresses in the reason."""
    return PermanentError(f"{what}: {code}") if 500 <= code < 600 else TransientError(f"{what}: {code}")


def _notification_id(message: Message) -> int:
    value = message.body.get("notification_id")
    if not isinstance(value, int):
        raise PermanentError("notification_id required")
    return value
