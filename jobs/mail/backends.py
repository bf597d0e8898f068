"""Django's and anymail's mail backends with what the delivery needs: a deadline for each exchange, and the mail's key.

The mail's Message-ID is its idempotency key, in the request's header where a provider takes one. The settings name
these classes (winecellar/mail_provider.py); transport.py keeps one per thread open.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
from contextlib import suppress
from typing import Any

import requests
from anymail.backends import postmark, resend
from django.conf import settings
from django.core.mail.backends import smtp

from jobs.mail.deadline import Deadline
from jobs.mail.over_http import Watched


class _OverHttp:
    """A mixin for anymail's backends."""

    session: requests.Session | None

    def create_session(self) -> requests.Session:
        session: requests.Session = super().create_session()  # type: ignore[misc]
        self._deadline = Deadline()
        for scheme in ("https://", "http://"):
            session.mount(scheme, Watched(self._deadline))
        session.max_redirects = 0  # followed, a POST would become a GET: a provider's answer, or none
        return session

    def post_to_esp(self, payload: Any, message: Any) -> Any:
        with self._deadline.within(settings.MAIL_TIMEOUT.total_seconds()):
            return super().post_to_esp(payload, message)  # type: ignore[misc]


class ResendBackend(_OverHttp, resend.EmailBackend):
    """Keeps a key for a day, and answers the same mail under the same key as it did the first time."""

    def build_message_payload(self, message: Any, defaults: Any) -> Any:
        payload = super().build_message_payload(message, defaults)
        if key := message.extra_headers.get("Message-ID"):
            payload.headers["Idempotency-Key"] = key.strip("<>")
        return payload


class PostmarkBackend(_OverHttp, postmark.EmailBackend):
    """Takes no key: what was accepted without our learning of it is sent again, under the same Message-ID."""


class SmtpBackend(smtp.EmailBackend):
    """One conversation per mail, all of which ends at the deadline."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._deadline = Deadline()

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        deadline = self._deadline
        base = super().connection_class

        class Watched(base):  # type: ignore[misc, valid-type]
            def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
                sock: socket.socket = super()._get_socket(host, port, timeout)
                deadline.watch(sock)
                return sock

            def starttls(self, *, context: ssl.SSLContext | None = None) -> Any:
                answer = super().starttls(context=context)
                if self.sock is not None:
                    deadline.watch(self.sock)
                return answer

        return Watched

    def _close_connection(self, connection: smtplib.SMTP) -> None:
        """What the server makes of our goodbye is no failure of the mail, which it has taken or refused before."""
        with suppress(Exception):
            connection.quit()
        connection.close()

    def send_messages(self, email_messages: Any) -> int:
        with self._deadline.within(settings.MAIL_TIMEOUT.total_seconds()):
            return int(super().send_messages(email_messages) or 0)
