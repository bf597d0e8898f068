"""Reads what the mail sink wrote: one JSON line per mail, in the order it took them. Imports no Django."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MailTaken:
    """One mail as the sink took it. `alert_id` is None, and `event_id` empty, for a mail that is about no alert."""

    received_at: datetime
    alert_id: int | None
    event_id: str
    message_id: str
    to: str
    subject: str


class MailLog:
    """Follows the file; each call returns the mails that came since the last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def read_new(self) -> list[MailTaken]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as lines:
            lines.seek(self._position)
            content = lines.read()
        whole = content[: content.rfind(b"\n") + 1]  # the last line may be half written
        self._position += len(whole)
        return [_parsed(line) for line in whole.splitlines()]


def _parsed(line: bytes) -> MailTaken:
    row = json.loads(line)
    return MailTaken(
        received_at=datetime.fromisoformat(row["received_at"]),
        alert_id=int(row["alert_id"]) if row["alert_id"].isdigit() else None,
        event_id=row["event_id"],
        message_id=row["message_id"],
        to=", ".join(row["to"]),
        subject=row["subject"],
    )
