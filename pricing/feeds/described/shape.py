"""What the descriptions of shapes share. Pure; used by the modules beside it."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}


def ref(name: str, words: str = "") -> Schema:
    """A reference to one of shapes.SCHEMAS."""
    told = {"description": words} if words else {}
    return {**told, "$ref": f"#/components/schemas/{name}"}
