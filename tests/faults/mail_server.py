"""A mail server for the sweeps, which remembers across processes what it accepted. Each call of it is a crash point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.mail.backends.base import BaseEmailBackend

from tests.faults.crash import Points

BACKEND = "tests.faults.mail_server.WritingBackend"
points: Points | None = None  # of the run that is under way
file: Path | None = None  # of the test that is under way


class WritingBackend(BaseEmailBackend):
    """One line per mail: its Message-ID."""

    def send_messages(self, messages: Any) -> int:
        def accept() -> int:
            assert file is not None
            with file.open("a") as accepted:
                accepted.writelines(f"{message.extra_headers['Message-ID']}\n" for message in messages)
            return len(messages)

        return int(points.around(accept)) if points else accept()


def begin(path: Path | None) -> None:
    """It writes there from now on, outside any run; nowhere when the test is over."""
    global points, file
    points, file = None, path


def forget() -> None:
    assert file is not None
    file.unlink(missing_ok=True)


def accepted() -> list[str]:
    """Message-IDs, in their order."""
    assert file is not None
    return file.read_text().splitlines() if file.exists() else []
