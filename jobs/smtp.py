"""Handing one mail to the mail server: what its answers mean. Touches no database, so it may run in a pool's thread.

Used as the `perform` of subscriptions whose effect is a mail.
"""

from __future__ import annotations

import smtplib
from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from jobs.errors import PermanentError, TransientError


def hand_over(mail: EmailMessage) -> bool:
    """True once the server took it. Raises TransientError or PermanentError by what the server answered."""
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


def stable_message_id(name: str) -> str:
    """`<name@domain>` with the domain we send from. `name` is the same on every try, so that a mailbox shows one."""
    domain = parseaddr(settings.MAIL_FROM)[1].rpartition("@")[2] or "localhost"
    return f"<{name}@{domain}>"


def _by_code(code: int, what: str) -> Exception:
    """SMTP's own classes (RFC 5321, 4.2.1): 4yz may succeed later, 5yz will not. No addresses in the reason."""
    return PermanentError(f"{what}: {code}") if 500 <= code < 600 else TransientError(f"{what}: {code}")
