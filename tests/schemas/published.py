"""A fixture for the tests of what publishes: each message is of its schema, with no field that that does not name.

Imported by the conftest.py of those folders.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from jobs import queue
from jobs.messages import NewMessage, dumps
from winecellar.event_schemas import MESSAGES


@cache
def validator(type_: str) -> Any:
    return jsonschema_rs.Draft202012Validator({**MESSAGES[type_], "additionalProperties": False})


def check(message: NewMessage) -> None:
    assert message.type in MESSAGES, f"{message.type} has no schema"
    validator(message.type).validate(json.loads(dumps(message.body)))


@pytest.fixture(autouse=True)
def every_event_is_of_its_schema(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that publishes a malformed event on purpose says so with a marker."""
    if request.node.get_closest_marker("publishes_malformed_events"):
        return
    insert = queue.insert_messages

    def checked(messages: Sequence[NewMessage], **more: Any) -> Any:
        for message in messages:
            check(message)
        return insert(messages, **more)

    monkeypatch.setattr(queue, "insert_messages", checked)
