"""The mails that the demo's sink has taken: the newest in memory, one JSON line for each in a file.

Guarantee: a mail is in the file before the sender is told that it was taken. Threads may share one box.
Called by mail_sink.py and mail_pages.py; mail_log.py reads the file.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

KEPT = 500


@dataclass(frozen=True)
class Mail:
    """One mail as taken; `text` and `html` are empty where the mail has no such part."""

    number: int
    received_at: datetime
    sender: str
    recipients: tuple[str, ...]
    subject: str
    message_id: str
    event_id: str
    alert_id: str
    text: str
    html: str

    def as_line(self) -> str:
        return json.dumps(
            {
                "received_at": self.received_at.isoformat(),
                "message_id": self.message_id,
                "event_id": self.event_id,
                "alert_id": self.alert_id,
                "to": list(self.recipients),
                "subject": self.subject,
            },
            ensure_ascii=False,
        )


class MailBox:
    """Keeps the newest `KEPT` mails and appends all of them to the log."""

    def __init__(self, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log.open("a", encoding="utf-8")
        self._mails: deque[Mail] = deque(maxlen=KEPT)
        self._count = 0
        self._lock = threading.Lock()

    def take(self, content: bytes, *, sender: str, recipients: list[str], received_at: datetime) -> Mail:
        """Read a mail, write its line, keep it. Mails of any shape are taken; what cannot be read is empty."""
        message = message_from_bytes(content, policy=policy.default)
        with self._lock:
            self._count += 1
            mail = Mail(
                number=self._count,
                received_at=received_at.astimezone(UTC),
                sender=sender,
                recipients=tuple(recipients),
                subject=" ".join(str(message.get("Subject", "")).split()),
                message_id=str(message.get("Message-ID", "")).strip(),
                event_id=str(message.get("X-Winecellar-Event-ID", "")).strip(),
                alert_id=str(message.get("X-Winecellar-Alert-ID", "")).strip(),
                text=_part(message, "plain"),
                html=_part(message, "html"),
            )
            self._log.write(mail.as_line() + "\n")
            self._log.flush()
            self._mails.append(mail)
            return mail

    def newest_first(self) -> list[Mail]:
        with self._lock:
            return list(reversed(self._mails))

    def get(self, number: int) -> Mail | None:
        with self._lock:
            return next((mail for mail in self._mails if mail.number == number), None)

    @property
    def count(self) -> int:
        """How many were taken in all, those no longer kept included."""
        return self._count

    def close(self) -> None:
        self._log.close()


def _part(message: EmailMessage, kind: str) -> str:
    part = message.get_body(preferencelist=(kind,))
    if part is None:
        return ""
    try:
        return str(part.get_content())
    except (LookupError, UnicodeError):  # an unknown charset: the sink still takes the mail
        return ""
