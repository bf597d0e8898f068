"""What stands beside us: whoever takes our mails, and the replicas that pages are read from. Nothing is sent."""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import get_connection
from django.db import Error, connections

from jobs.database import is_away
from winecellar.deployment.doctor.finding import Finding, fail, ok, warn

SMTP = "jobs.mail.backends.SmtpBackend"


def mail() -> Iterator[Finding]:
    """Whether it can be reached, and a mail server's name and password are taken."""
    api = next((url for name, url in settings.ANYMAIL.items() if name.endswith("_API_URL")), None)
    if settings.EMAIL_BACKEND != SMTP and not api:
        say = warn if settings.PRODUCTION else None
        if say:
            yield say("mail", "Mails go to no mail server.", "Set EMAIL_URL (docs/mail.md).")
        else:
            yield ok("mail", "not sent, which is as it should be in development")
        return
    where = urlsplit(api).hostname if api else settings.EMAIL_HOST
    try:
        _reach_api(api) if api else _reach_server()
    except smtplib.SMTPAuthenticationError as error:
        yield fail("mail", f"{where} does not know us: {error.smtp_code}.", "Mend the name and password in EMAIL_URL.")
    except (OSError, smtplib.SMTPException) as error:
        do = "See that EMAIL_URL is right and this host may connect. Until then alerts wait, for a day (docs/mail.md)."
        yield fail("mail", f"{where} cannot be reached: {type(error).__name__}.", do)
    else:
        yield ok("mail", f"{where} answers")


def _reach_server() -> None:
    server = get_connection(fail_silently=False)
    server.open()
    server.close()


def _reach_api(url: str) -> None:
    parts = urlsplit(url)
    seconds = settings.MAIL_TIMEOUT.total_seconds()
    encrypted = parts.scheme == "https"
    with socket.create_connection((parts.hostname, parts.port or (443 if encrypted else 80)), timeout=seconds) as there:
        if encrypted:
            ssl.create_default_context().wrap_socket(there, server_hostname=parts.hostname).close()


def replicas() -> Iterator[Finding]:
    """Each is a standby that answers and keeps up; pages leave out one that does not, so this only warns."""
    for alias in settings.REPLICAS:
        try:
            with connections[alias].cursor() as cursor:
                cursor.execute(
                    "SELECT pg_is_in_recovery(), CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0"
                    " ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END"
                )
                standby, behind = cursor.fetchone()
        except Error as error:
            why = "is away" if is_away(error) else f"fails: {type(error).__name__}"
            yield warn("replicas", f"{alias} {why}.", "Pages are read from the primary until it is back.")
            continue
        limit = settings.REPLICA_MAX_LAG.total_seconds()
        if not standby:
            do = "Take it out of DATABASE_REPLICA_URLS, or, after a failover, name it in DATABASE_URL."
            yield fail("replicas", f"{alias} is no standby.", do)
        elif behind is not None and behind > limit:
            yield warn(
                "replicas", f"{alias} is {behind:.0f} s behind, and {limit:.0f} s are allowed.", "See docs/replicas.md."
            )
        else:
            yield ok("replicas", f"{alias} follows")
    if not settings.REPLICAS:
        yield ok("replicas", "none configured")
