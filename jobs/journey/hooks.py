"""What a domain says about an event's journey. Declared in the module that settings.JOURNEYS names, as routes are.

jobs knows no wine: who sent it, what was decided on it, which mails came of it and whether they were taken is asked
here; so is what a person may have in hand instead of an event id. Reads only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any

from django.conf import settings


@dataclass(frozen=True)
class Published:
    """One message in the log, as the domain reads it. `body` is {} where it is no object."""

    message_id: int
    event_id: str
    type: str
    key: str
    published_at: datetime
    body: Mapping[str, Any]
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class Fact:
    """“Merchant: Merchant X”; `url` is where one reads more of it."""

    name: str
    value: str
    url: str = ""


@dataclass(frozen=True)
class Note:
    """Something that happened, in a sentence."""

    at: datetime | None
    what: str
    url: str = ""


@dataclass(frozen=True)
class Section:
    """What became of the event in one respect. `more`: there are more than are told. `empty`: what to say of none."""

    title: str
    notes: Sequence[Note] = ()
    more: bool = False
    empty: str = ""


@dataclass(frozen=True)
class Found:
    """An event that a search came to, and why."""

    event_id: str
    why: str
    at: datetime | None = None


@dataclass(frozen=True)
class Journeys:
    """`origin`: where a message came from. `became`: what came of it. `find`: events by what the domain knows.

    `sought`: attributes that a person may have in hand, looked for among the newest messages. `hint`: what one may
    search for, beside event ids and trace ids.
    """

    origin: Callable[[Published], Sequence[Fact]] = lambda message: ()
    became: Callable[[Published], Sequence[Section]] = lambda message: ()
    find: Callable[[str], Sequence[Found]] = lambda text: ()
    sought: Sequence[str] = ()
    hint: str = ""
    not_kept: Sequence[str] = field(default_factory=tuple)  # what is forgotten, and after how long


@cache
def load_journeys() -> Journeys:
    declared: Journeys = import_module(settings.JOURNEYS).JOURNEYS
    return declared
