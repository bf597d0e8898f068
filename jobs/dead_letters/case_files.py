"""What a domain says about its dead letters. Declared in the module that settings.CASE_FILES names, as routes are.

jobs knows no wine: whom a letter came from, how its raw body reads, how a mended adapter reads it again and whether
newer facts have been applied since is asked here. What a handler would refuse is in its Route (`check`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import structlog
from django.conf import settings

from jobs.messages import Message, NewMessage

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Case:
    """One dead letter, as the domain and the preflight read it. `message_id` None: it never was in the message log."""

    letter_id: int
    subscription: str
    message_id: int | None
    event_id: str
    type: str
    key: str
    body_text: str
    attributes: Mapping[str, str]
    published_at: datetime

    @cached_property
    def message(self) -> Message:
        """As its handler would receive it."""
        return Message(0, self.message_id or 0, self.event_id, self.type, self.key, self.body_text, None, "", 1)

    @property
    def body(self) -> Any:
        return self.message.body


@dataclass(frozen=True)
class RawSource:
    """The body that a message was made from: text for a person, secrets masked. `permission`: who may see it."""

    text: str
    about: str
    url: str
    permission: str


class CannotError(Exception):
    """This letter cannot be read again; the text says why."""


def _nothing(*_: Any) -> Any:
    return None


@dataclass(frozen=True)
class CaseFiles:
    """`origin_word`: what an origin is, “merchant”. `origin(type, body)`: whom a message came from, or "".

    readapt     cases → for each the message that the adapter makes of its raw body now, or why it makes none
    retake      a case that never was a message: take what was sent again; raises CannotError. In a transaction
    superseded  cases → ids of the letters of which something newer has been applied since
    """

    origin_word: str = "origin"
    origin: Callable[[str, Any], str] = lambda type_, body: ""
    schema: Callable[[str], dict[str, Any] | None] = _nothing
    mask: Callable[[str], str] = lambda text: text
    raw: Callable[[Mapping[str, str]], RawSource | None] = _nothing
    readapt: Callable[[Sequence[Case]], Sequence[NewMessage | CannotError]] = lambda cases: [
        CannotError("nobody knows how to read it again") for _ in cases
    ]
    retake: Callable[[Case, datetime], None] = _nothing
    superseded: Callable[[Sequence[Case]], set[int]] = lambda cases: set()


@cache
def load_case_files() -> CaseFiles:
    declared: CaseFiles = import_module(settings.CASE_FILES).CASE_FILES
    return declared


def origin_of(message_type: str, message: Message | NewMessage) -> str:
    """Whom a message came from. Never raises: a letter must always be writable, whatever its body."""
    try:
        return load_case_files().origin(message_type, message.body)
    except Exception:
        log.exception("dead_letter.origin_unknown", type=message_type)
        return ""
