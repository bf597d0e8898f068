"""The account-mail subscription: mails about accounts, apart from the alerts', so that neither waits for the other.

Guarantee: a mail is sent only while its row is there and its link would work; the row goes in the transaction that
acks. The Message-ID is the same on every try. jobs/mail/transport.py hands the mails over.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.utils import timezone

from jobs.errors import PermanentError
from jobs.mail.transport import stable_message_id
from jobs.messages import Message
from pricing.sealing import UnreadableError, unseal
from winecellar.accounts.models import AccountMail


def prepare(messages: Sequence[Message]) -> list[EmailMultiAlternatives | None]:
    """The mail for each command; None where it is no longer wanted: the account is gone, or its link too old."""
    ids = [message.number("account_mail_id") for message in messages]
    wanted = AccountMail.objects.filter(wanted_until__gt=timezone.now()).in_bulk(ids)
    return [_compose(wanted[pk]) if pk in wanted else None for pk in ids]


def record(pairs: Sequence[tuple[Message, bool | None]]) -> None:
    """Sent or not wanted: the text is needed no more."""
    AccountMail.objects.filter(pk__in=[message.number("account_mail_id") for message, _ in pairs]).delete()


def _compose(row: AccountMail) -> EmailMultiAlternatives:
    try:
        text, html = unseal(row.sealed_text).decode(), unseal(row.sealed_html).decode()
    except UnreadableError as error:
        raise PermanentError("sealed with a SECRET_KEY that is no longer ours") from error
    mail = EmailMultiAlternatives(
        subject=row.subject,
        body=text,
        from_email=settings.MAIL_FROM,
        to=[row.to],
        headers={"Message-ID": stable_message_id(f"account-{row.pk}"), "Auto-Submitted": "auto-generated"},
    )
    mail.attach_alternative(html, "text/html")
    return mail


def check(message: Message) -> None:
    """Raises PermanentError for a command that names nothing."""
    message.number("account_mail_id")
