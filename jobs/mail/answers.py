"""What a mail provider's answers mean, for SMTP and for HTTP: sent, try later, never, or the provider is away.

Away is whatever would meet every mail alike: a timeout, a server in trouble, too many requests, and also a key, a
sender or an address of the API that is not accepted: a wrong setting must not make a dead letter of each mail. The
reasons hold no address and nothing that the provider said. Called by transport.py.
"""

from __future__ import annotations

import smtplib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from jobs.errors import AwayError, PermanentError, RefusedError, TransientError

# The idempotency errors of the Resend API, both with status 409.
SAME_KEY_OTHER_MAIL = "invalid_idempotent_request"
SAME_KEY_AT_WORK = "concurrent_idempotent_requests"
# Statuses under which the next mail would fare alike: who we are, where we ask, how often.
FOR_ALL = {401, 402, 403, 404, 405, 407, 408, 421, 425, 429}
LONGEST_RETRY_AFTER = 86_400.0  # a daily quota; a server's slip of the pen must not stop the mails for a year


class TakenAlreadyError(Exception):
    """The provider has taken a mail with this key before; it must not be sent again."""


def of_http(status: int, name: str | None, retry_after: float) -> Exception:
    """What an HTTP status other than success means. `name`: what the provider calls the error, if it does."""
    if status == 409 and name == SAME_KEY_OTHER_MAIL:
        return TakenAlreadyError("mail provider: 409, the key was used")
    if status == 409:
        return TransientError("mail provider: 409", retry_after=max(retry_after, 1.0))
    if status in FOR_ALL or not 400 <= status < 500:
        return AwayError(f"mail provider: {status}", retry_after=retry_after)
    return PermanentError(f"mail provider: {status}")


def of_smtp(error: smtplib.SMTPException | OSError) -> Exception:
    """By SMTP's own classes (RFC 5321, 4.2.1): 4yz may succeed later, 5yz will not."""
    match error:
        case smtplib.SMTPRecipientsRefused(recipients=recipients):
            code = max((code for code, _ in recipients.values()), default=0)
            if 500 <= code < 600:
                return RefusedError(f"recipient refused: {code}")
            return AwayError(f"recipient refused: {code}", whole=False)  # greylisted, full: only this one waits
        case smtplib.SMTPDataError(smtp_code=code) if 500 <= code < 600:
            return PermanentError(f"mail server: {code}")
        case smtplib.SMTPResponseException(smtp_code=code):
            return AwayError(f"mail server: {code}")
        case _:
            return AwayError(f"mail server: {type(error).__name__}")


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float:
    """The seconds that a Retry-After header names, as a number or as a date; 0 for none, or for what is neither."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return 0.0
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return min(max((at - (now or datetime.now(UTC))).total_seconds(), 0.0), LONGEST_RETRY_AFTER)


def error_name(document: Any) -> str | None:
    """Resend's word for an error: {"statusCode": 409, "name": …, "message": …}."""
    name = document.get("name") if isinstance(document, dict) else None
    return name if isinstance(name, str) else None
