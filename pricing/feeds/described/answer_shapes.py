"""The shapes of what the feeds answer to prices: see shapes.py, which lists them. Pure."""

from __future__ import annotations

from pricing.feeds import intake, shop_intake
from pricing.feeds.described.shape import TEXT, Schema, ref
from pricing.feeds.refusals import REFUSALS, UNREADABLE
from pricing.listings import Kept
from pricing.rules import Verdict

_EVENT_ID: Schema = {"type": "string", "pattern": "^evt_[0-9a-z]{26}$"}
_HELD = Verdict.HELD.value


def _result(name: str, reasons: set[str]) -> Schema:
    return {
        "type": "object",
        "required": [name, "applied"],
        "properties": {
            name: TEXT,
            "wine_id": TEXT,
            "applied": {"description": "Whether it is your price now, or withdrawn.", "type": "boolean"},
            "withdrawn": {"description": "You offer it no longer, and we have told so.", "const": True},
            "returned": {"description": "It was withdrawn, and is back at the price it had.", "const": True},
            "reason": {"description": "Why it is not.", "enum": sorted(reasons)},
            "held": {"description": "What it waits for: a person, or a rate.", "enum": list(intake.HELD.values())},
            "event_id": {"description": "The event that tells of it.", **_EVENT_ID},
        },
        "if": {"properties": {"applied": {"const": True}}},
        "then": {"not": {"anyOf": [{"required": ["reason"]}, {"required": ["held"]}]}},
        "else": {
            "required": ["reason"],
            "not": {"anyOf": [{"required": ["returned"]}, {"required": ["withdrawn"]}]},
            "if": {"properties": {"reason": {"const": _HELD}}},
            "then": {"required": ["held"]},
            "else": {"not": {"required": ["held"]}},
        },
    }


_REQUEST_ID: Schema = {"description": "Tell us this one when you ask about it.", "type": "string"}
_CODE = "For programs; never changes its meaning."
_FIELD: Schema = {"description": "Item and field, such as `observations[3].price`.", "type": ["string", "null"]}


def _taken(result: str, **more: Schema) -> Schema:
    return {
        "description": "It is stored, with everything that follows from it.",
        "type": "object",
        "required": ["accepted", "duplicate", "results", "event_ids", "request_id"],
        "properties": {
            "accepted": {"description": "How many observations were taken.", "type": "integer", "minimum": 0},
            "duplicate": {"description": "Whether this is the answer of an earlier request.", "type": "boolean"},
            "results": {"description": "In the order of the observations.", "type": "array", "items": ref(result)},
            "event_ids": {"type": "array", "items": _EVENT_ID},
            **more,
            "request_id": _REQUEST_ID,
        },
    }


TAKEN = _taken("Result", ignored_fields={"description": "Fields we do not know.", "type": "integer", "minimum": 0})
TAKEN["required"].append("ignored_fields")
LISTINGS_TAKEN: Schema = {
    **_taken(
        "ListingResult",
        ignored={"description": "Why nothing of it was looked at.", "const": shop_intake.UNKNOWN_TOPIC},
        unreadable={
            "description": "What we could not read, so that nothing of it was taken. A person here is told.",
            "type": "object",
            "required": ["code", "message", "field"],
            "properties": {
                "code": {"description": _CODE, "enum": list(UNREADABLE)},
                "message": {"description": "For people.", "type": "string"},
                "field": _FIELD,
            },
        },
    ),
    "if": {"anyOf": [{"required": ["ignored"]}, {"required": ["unreadable"]}]},
    "then": {"properties": {"accepted": {"const": 0}}, "not": {"required": ["ignored", "unreadable"]}},
}

ERROR: Schema = {
    "description": "Why the request was refused. Nothing of it was stored.",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "field", "request_id"],
            "properties": {
                "code": {"description": _CODE, "enum": sorted(REFUSALS)},
                "message": {"description": "For people.", "type": "string"},
                "field": _FIELD,
                "request_id": _REQUEST_ID,
            },
        }
    },
}

RESULT = _result("wine_id", {*intake.REASONS.values()})
LISTING_RESULT = _result("listing", {*intake.REASONS.values(), *(kept.value for kept in Kept)})
