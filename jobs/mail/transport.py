"""Handing one mail to the provider that the settings name. Touches no database, so it may run in a pool's thread.

Used as the `perform` of subscriptions whose effect is a mail. Guarantee: it ends within settings.MAIL_TIMEOUT, or not
much later; what follows from each answer is answers.py's. Each thread keeps its connection to an HTTP provider open.
"""

from __future__ import annotations

import smtplib
import threading
from contextlib import suppress
from email.utils import parseaddr
from functools import cache
from typing import Any

import structlog
from anymail.exceptions import AnymailAPIError, AnymailError, AnymailRecipientsRefused
from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend

from jobs import tracing
from jobs.errors import AwayError, PermanentError, RefusedError
from jobs.mail import answers
from jobs.mail.backends import SmtpBackend

log = structlog.get_logger(__name__)
BREAKER = "mail"  # the name of the breaker that all subscriptions with mails share: they have one provider


def hand_over(mail: EmailMessage) -> bool:
    """True once the provider has taken it. Raises what its answer means: AwayError, TransientError, PermanentError or,
    of the recipient, RefusedError."""
    connection = _connection()
    try:
        with tracing.outside("hand over mail"):
            taken = connection.send_messages([mail])
    except Exception as error:
        _drop()
        meaning = _meaning(error)
        if isinstance(meaning, answers.TakenAlreadyError):
            # An earlier try was taken, and the text has changed since: a wine was renamed. One mail per key it is.
            log.warning("mail.taken_already", message_id=mail.extra_headers.get("Message-ID"))
            return True
        if meaning is error:
            raise
        raise meaning from error
    if not taken:
        raise PermanentError("nobody to send it to")
    return True


SENT, REFUSED = "sent", "refused"  # what became of a mail; None: it was not wanted


def deliver(mail: EmailMessage) -> str:
    """Hand it over; SENT or REFUSED. An address that is refused for good is a fact about its person, which `record`
    writes down, and not a message that somebody must look at."""
    try:
        hand_over(mail)
    except RefusedError:
        return REFUSED
    return SENT


def stable_message_id(name: str) -> str:
    """`<name@domain>` with the domain we send from. `name` is the same on every try, so that a mailbox shows one."""
    return f"<{name}@{_domain(settings.MAIL_FROM)}>"


@cache
def _domain(address: str) -> str:
    return parseaddr(address)[1].rpartition("@")[2] or "localhost"


def _meaning(error: Exception) -> Exception:
    match error:
        case AnymailRecipientsRefused():
            return RefusedError("recipient refused")
        case AnymailAPIError():
            return _of_provider(error)
        case AnymailError():  # an address or a header that cannot be sent in this way at all
            return PermanentError(f"mail provider: {type(error).__name__}")
        case smtplib.SMTPException() | OSError():
            return answers.of_smtp(error)
        case _:
            return error


def _of_provider(error: Any) -> Exception:
    response = error.response
    if response is None:  # no answer, or none in time
        return AwayError("mail provider: no answer")
    if 200 <= response.status_code < 300:  # an answer that is none: a proxy's page, or cut off
        return AwayError("mail provider: unreadable answer")
    try:
        name = answers.error_name(response.json())
    except ValueError:
        name = None
    return answers.of_http(response.status_code, name, answers.retry_after(response.headers))


_kept = threading.local()


def _connection() -> BaseEmailBackend:
    """One that is kept open for an HTTP provider; a mail server is called for each mail, it does not wait for the next.

    By the settings it was made from, so that a test which changes them gets another.
    """
    made_from = (settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT, str(settings.ANYMAIL))
    if getattr(_kept, "made_from", None) != made_from:
        _drop()
        _kept.made_from, _kept.connection = made_from, get_connection(fail_silently=False)
        if not isinstance(_kept.connection, SmtpBackend):
            _kept.connection.open()
    connection: BaseEmailBackend = _kept.connection
    return connection


def _drop() -> None:
    """After a failure the connection may be in the middle of anything."""
    connection = getattr(_kept, "connection", None)
    _kept.made_from = _kept.connection = None
    if connection is not None:
        with suppress(Exception):
            connection.close()
