"""What goes over the wire about catalogue files, as JSON Schemas for the OpenAPI document; the names of counts and
statuses are those of the code. Pure; called by shapes.py alone, and held against every answer that tests get.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from pricing.catalogues import report
from pricing.contract import TIME_PATTERN
from pricing.models import CatalogueFile

Schema = dict[str, Any]
Status = CatalogueFile.Status

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TIME: Schema = {"type": "string", "pattern": TIME_PATTERN}
_ID: Schema = {"description": "The file's number.", "type": "integer", "minimum": 1}
_SHA256: Schema = {"description": "Of the bytes as they came.", "type": "string", "pattern": "^[0-9a-f]{64}$"}
_REQUEST_ID: Schema = {"description": "Tell us this one when you ask about it.", "type": "string"}


def _always(words: str, fields: dict[str, Schema]) -> Schema:
    return {"description": words, "type": "object", "required": list(fields), "properties": fields}


def _or_null(words: str, schema: Schema) -> Schema:
    return {"description": words, "anyOf": [schema, {"type": "null"}]}


FILE: Schema = {
    "description": "The file's bytes, as they are or packed with gzip; docs/catalogues.md says which formats we read.",
    "type": "string",
}
TAKEN = _always(
    "All of the file is stored, and is going to be taken. What comes of its rows is in the report.",
    {
        "id": _ID,
        "status": {"const": Status.UPLOADED.value},
        "sha256": _SHA256,
        "report": {"description": "Where the report is, for the same key.", "type": "string", "format": "uri"},
        "request_id": _REQUEST_ID,
    },
)
REJECTION = _always(
    "A row that was not taken, or something that is to be known of one that was.",
    {
        "line": {"description": "Where the row begins.", "type": ["integer", "null"]},
        "field": {"description": "Which of its fields; empty if it is about all of them.", "type": "string"},
        "reason": _TEXT,
        "listing": {"description": "Your own id of what it is about.", "type": ["string", "null"]},
    },
)
REPORT = _always(
    "What came of a file, so far. `read` is the sum of the counts once the file is done.",
    {
        "id": _ID,
        "merchant_id": _TEXT,
        "name": {"description": "As you called it.", "type": "string"},
        "sha256": {"description": "Of the bytes as they came; empty until they all have.", "type": "string"},
        "bytes": _COUNT,
        "as_of": {"description": "The time of which its prices are.", **_TIME},
        "received_at": _TIME,
        "finished_at": _or_null("Null until it is done or refused.", _TIME),
        "status": {"enum": list(Status.values)},
        "error": {"description": "Why it was refused.", "type": ["string", "null"]},
        "progress": _or_null(
            "Null while it is not known how much there is to do.", {"type": "number", "minimum": 0, "maximum": 1}
        ),
        "read": {"description": "How many rows there were so far.", **_COUNT},
        **{name: {"description": f"Rows that {report.MEANING[name]}.", **_COUNT} for name in report.COUNTS},
        "rejections": {
            "description": f"The first {settings.CATALOGUE_REMARKS:,} of each kind.",
            "type": "array",
            "items": {"$ref": "#/components/schemas/CatalogueRejection"},
        },
        "rejections_not_shown": {"description": "How many more there are.", **_COUNT},
        "absent": _or_null("Listings of earlier files that are not in this one; null until they are counted.", _COUNT),
        "absent_listings": {
            "description": f"The first {settings.CATALOGUE_REMARKS:,} of them, by your own id.",
            "type": "array",
            "items": _TEXT,
        },
        "withdrawn": {"description": "How many offers ended because of that.", **_COUNT},
        "notes": {"description": "What else is to be known, in sentences.", "type": "array", "items": _TEXT},
        "request_id": _REQUEST_ID,
    },
)
