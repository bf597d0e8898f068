"""CloudEvents 1.0 over HTTP, structured, batched and binary: the envelope around canonical observations. Pure.

The event's `data` is what the canonical format has as its body. `source` and `id` together name the event, so the
answer is remembered under both, for what the event says: on its way it may change from one form to another and be put
into another batch, and is still the same event. Imports no models.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from pricing.contract import parse_time
from pricing.feeds import canonical
from pricing.feeds.canonical import Delivery
from pricing.feeds.errors import FeedError
from pricing.feeds.parse import parse
from pricing.rules import Observation

HEADER = "ce-"
LONGEST_TEXT = 500
# Tracing is an extension that we know; see https://github.com/cloudevents/spec/blob/main/cloudevents/extensions.
_ATTRIBUTES = frozenset(
    {
        *("specversion", "id", "source", "type", "time", "subject", "datacontenttype", "dataschema"),
        *("data", "data_base64", "traceparent", "tracestate"),
    }
)
_JSON = "application/json"


def adapt_structured(body: bytes, *, merchant_id: str, now: datetime) -> Delivery:
    """Read one event whose attributes and data are one JSON object."""
    return _event(parse(body), merchant_id=merchant_id, now=now, at="")


def adapt_batch(body: bytes, *, merchant_id: str, now: datetime) -> list[Delivery]:
    """Read a JSON array of events; each has its own id, and so is a delivery of its own."""
    events = parse(body)
    if not isinstance(events, list) or not events:
        raise FeedError(422, "invalid_observations", "A batch is a JSON array with at least one event.")
    canonical.check_count(len(events), None)
    found = [_event(event, merchant_id=merchant_id, now=now, at=f"[{index}].") for index, event in enumerate(events)]
    canonical.check_count(sum(len(delivery.observations) for delivery in found), None)
    return found


def adapt_binary(headers: Mapping[str, str], body: bytes, *, merchant_id: str, now: datetime) -> Delivery:
    """Read an event whose attributes are headers `ce-…` and whose data is the body. `headers` have lower-case names."""
    event: dict[str, Any] = {
        name.removeprefix(HEADER): _header(name, value) for name, value in headers.items() if name.startswith(HEADER)
    }
    return _delivery(event, parse(body), merchant_id=merchant_id, now=now, at=HEADER, data_at="")


def _header(name: str, value: str) -> str:
    """CloudEvents percent-encodes what a header cannot carry."""
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise _invalid("This header's percent-encoding is not UTF-8.", name) from None


def _event(event: Any, *, merchant_id: str, now: datetime, at: str) -> Delivery:
    if not isinstance(event, dict):
        raise FeedError(422, "expected_object", "An event must be a JSON object.", field=at.rstrip(".") or None)
    if event.get("datacontenttype", _JSON) != _JSON:
        raise _invalid(f"The data's type must be {_JSON}.", f"{at}datacontenttype")
    return _delivery(event, _data(event, at), merchant_id=merchant_id, now=now, at=at, data_at=f"{at}data.")


def _data(event: dict[str, Any], at: str) -> Any:
    if ("data" in event) == ("data_base64" in event):
        raise _invalid("Send the observation as data, or as data_base64.", f"{at}data")
    if "data" in event:
        return event["data"]
    try:
        text = base64.b64decode(event["data_base64"], validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise _invalid("This is not base64.", f"{at}data_base64") from None
    try:
        return parse(text)
    except FeedError as error:
        place = f"{at}data_base64" if error.field is None else f"{at}data.{error.field}"
        raise FeedError(error.status, error.code, error.message, field=place) from None


def _delivery(
    event: Mapping[str, Any], data: Any, *, merchant_id: str, now: datetime, at: str, data_at: str
) -> Delivery:
    """`at` and `data_at` are the paths to the event's attributes and to its data."""
    if event.get("specversion") != "1.0":
        raise _invalid("The version must be 1.0.", f"{at}specversion")
    id_ = canonical.check_delivery_id(event.get("id"), f"{at}id")
    source = _text(event.get("source"), f"{at}source")
    _text(event.get("type"), f"{at}type")
    data = _with_time(data, event.get("time"), f"{at}time")
    read = canonical.adapt(data, merchant_id=merchant_id, now=now, at=data_at)
    attributes = {"merchant_delivery_source": source}
    for name in ("traceparent", "tracestate"):
        if isinstance(event.get(name), str):
            attributes[name] = event[name]
    return replace(
        read,
        delivery_id=id_,
        key="ce:" + hashlib.sha256(f"{source}\n{id_}".encode()).hexdigest(),
        meaning=_meaning(read),
        field=f"{at}id",
        ignored_fields=read.ignored_fields + len(event.keys() - _ATTRIBUTES),
        attributes=attributes,
    )


def _with_time(data: Any, time: Any, where: str) -> Any:
    """The event's time stands for the observation's where that has none: the price came to be when the event did."""
    if time is None:
        return data
    try:
        parse_time(time if isinstance(time, str) else "")
    except ValueError:
        message = "A time is RFC 3339 with its offset, such as 2030-05-17T09:30:00Z."
        raise FeedError(422, "invalid_time", message, field=where) from None
    if isinstance(data, dict) and "observations" not in data:
        return {"occurred_at": time, **data}
    return data


def _meaning(read: Delivery) -> bytes:
    return json.dumps([_said(seen) for seen in read.observations]).encode()


def _said(seen: Observation) -> list[str | float]:
    currency, price = seen.asked
    other_money = [currency] if seen.native_currency else []
    more = [*other_money, *([f"tax {seen.tax}"] if seen.tax else []), *(["withdrawn"] if seen.withdrawn else [])]
    return [seen.wine_id, str(price), seen.occurred_at.timestamp(), *more]


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_TEXT or not value.isprintable():
        raise _invalid(f"Use 1 to {LONGEST_TEXT} printable characters.", where)
    return value


def _invalid(message: str, where: str) -> FeedError:
    return FeedError(422, "invalid_cloudevent", message, field=where)
