"""The account-mail subscription: mails about accounts, apart from the alerts', so that neither waits for the other.

Guarantee: a mail is sent only while its row is there and its link would work; the row goes in the transaction that
acks. The Message-ID is the same on every try. jobs/smtp.py hands the mails over.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.utils import timezone

from jobs.errors import PermanentError
from jobs.messages import Message
from jobs.smtp import stable_message_id
from pricing.sealing import UnreadableError, unseal
from winecellar.accounts.models import AccountMail


def prepare(messages: Sequence[Message]) -> list[EmailMultiAlternatives | None]:
    """The mail for each command; None where it is no longer wanted: the account is gone, or its link too old."""
    ids = [_mail_id(message) for message in messages]
    wanted = AccountMail.objects.filter(wanted_until__gt=timezone.now()).in_bulk(ids)
    return [_compose(wanted[pk]) if pk in wanted else None for pk in ids]


def record(pairs: Sequence[tuple[Message, bool | None]]) -> None:
    """Sent or not wanted: the text is needed no more."""
    AccountMail.objects.filter(pk__in=[_mail_id(message) for message, _ in pairs]).delete()


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
    _mail_id(message)


def _mail_id(message: Message) -> int:
    value = message.body.get("account_mail_id")
    if not isinstance(value, int):
        raise PermanentError("account_mail_id required")
    return value
