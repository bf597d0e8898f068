"""A message: body (the business contract) and attributes (transport metadata). Pure; imports no Django."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import simplejson

from jobs.errors import PermanentError

# Crockford's base 32: sorts as the bytes do, has no letter that looks like a digit.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_BITS, _RANDOM_BITS = 48, 82
_LENGTH = (_TIME_BITS + _RANDOM_BITS) // 5

TRACEPARENT = "traceparent"  # the attribute that has a message's trace context; see tracing.py
NO_TRACE: Mapping[str, str] = MappingProxyType({})
# Of a message's attributes those that say something of it alone, and so not of what follows from it.
OF_ITSELF = frozenset({"only_for", "readapted_from", "caused_by"})


def new_event_id() -> str:
    """Mint an event id: `evt_` and 26 letters, 48 bits of milliseconds first, so that neighbours in time
    are neighbours in the ledger's index, then 82 random bits."""
    number = (time.time_ns() // 1_000_000 << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    letters = [_ALPHABET[number >> shift & 31] for shift in range(5 * (_LENGTH - 1), -1, -5)]
    return "evt_" + "".join(letters)


def is_command(message_type: str) -> bool:
    """Commands are imperative and bare (`send_alert_email`); events are `entity.past_tense`."""
    return "." not in message_type


@dataclass(frozen=True, slots=True)
class NewMessage:
    """What a producer publishes. `key` names the entity whose order must hold; Decimals in `body` keep their digits."""

    type: str
    key: str
    body: Mapping[str, Any]
    event_id: str = field(default_factory=new_event_id)
    attributes: Mapping[str, str] = field(default_factory=dict)

    def as_row(self, trace: Mapping[str, str] = NO_TRACE) -> dict[str, Any]:
        """As it is stored; in this trace, unless it brought its own."""
        return {
            "event_id": self.event_id,
            "type": self.type,
            "key": self.key,
            "body": self.body,
            "attributes": {**trace, **self.attributes}
            if trace and TRACEPARENT not in self.attributes
            else dict(self.attributes),
        }


class _Fields(NamedTuple):
    id: int  # of the delivery; ascending within a key in publication order
    message_id: int
    event_id: str
    type: str
    key: str
    body_text: str
    attributes_text: str | None
    published_at_text: str
    receive_count: int


class Message(_Fields):
    """What a handler receives: one message as handed out to one subscription. A tuple: hundreds are made per claim.

    `body_text` is the JSON as stored, for handlers that pass it on to SQL without parsing it;
    `body` is parsed at first use, its numbers as Decimal.
    """

    @cached_property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body_text, parse_float=Decimal)
        return parsed

    def number(self, name: str) -> int:
        """What a command is about, as its body has it. Raises PermanentError where it is not there."""
        value = self.body.get(name)
        if not isinstance(value, int):
            raise PermanentError(f"{name} required")
        return value

    @property
    def published_at(self) -> datetime:
        """Read from its text when asked for: making the time costs more than making the rest of the message."""
        return datetime.fromisoformat(self.published_at_text)

    @cached_property
    def attributes(self) -> dict[str, str]:
        parsed: dict[str, str] = json.loads(self.attributes_text) if self.attributes_text else {}
        return parsed


def dumps(value: Any) -> str:
    """JSON whose Decimals are numbers with all their digits: Decimal("189.00") is 189.00."""
    return str(simplejson.dumps(value, use_decimal=True, ensure_ascii=False, separators=(",", ":")))


def join_bodies(messages: list[Message]) -> str:
    """The bodies as one JSON array, cut from the stored texts without parsing them."""
    return "[" + ",".join(message.body_text for message in messages) + "]"
